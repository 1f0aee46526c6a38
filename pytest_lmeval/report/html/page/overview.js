// The first view: the verdict and its reasons, the scores, and further facts about the run.

const VERDICT_TAGS = { regression: "bad", inconclusive: "warn", improvement: "good", stale: "warn", uncompared: "soft" };
const SHOWN_FLIPS = 8;
const SHOWN_REASONS = 12;
const SHOWN_WARNINGS = 3;

function overviewView() {
  return [
    several ? decision() : verdict(),
    several ? null : figures(),
    section("Models", modelsSection()),
    section("Tasks", tasksSection()),
    section("Prompts", promptsSection()),
    section("Verdicts", reasonsSection()),
    section("Remarks, warnings and quarantine", remarksSection()),
    section("Scores", scoresSection()),
    section("Reasons", whySection()),
    section("Got worse", flipsSection("worse")),
    section("Not passed", !several && !report.has_baseline && failuresSection()),
    section("Categories", categoriesSection()),
    section("Latency", latencySection()),
    section("Usage", usageSection()),
    section("Calibration", board.calibration && facts(named(board.calibration))),
    section("Left out", leftOutSection()),
    section("Run", runSection()),
  ];
}

// Without a gate, the largest word is the score.
const IS_SCORED = report.off && board.complete && typeof board.overall_score === "number";

function verdict() {
  const gate = board.gate;
  const [tone, glyph, word] = report.off ? NOT_GATED : (gate && VERDICTS[gate.verdict]) || withoutGate(gate);
  const mark = h("span", { class: "glyph", "aria-hidden": "true" }, glyph);
  const title = IS_SCORED ? [score(board.overall_score), h("span", { class: "of" }, " overall score")] : [mark, word];
  const lead = IS_SCORED ? [overallNote(), gate && ", not gated"] : visible(report.sentence);
  return h(
    "div",
    { class: `verdict ${tone}` },
    h("h1", { tabindex: "-1" }, title),
    h("p", { class: "lead" }, lead),
    h("p", { class: "note" }, headline()),
    listOf(gate && gate.warnings, SHOWN_WARNINGS, "warning", "note warn"),
  );
}

function withoutGate(gate) {
  if (!board.complete) return VERDICTS.incomplete;
  return ["", "\u2022", gate ? String(gate.verdict) : "Complete"];
}

// A list of lines; the end of a long list is folded.
function listOf(lines, most, what, tone) {
  const items = (lines || []).map((line) => h("li", { class: tone }, visible(String(line))));
  if (!items.length) return null;
  const rest = items.slice(most);
  return [h("ul", { class: "lines" }, items.slice(0, most)), rest.length > 0 && foldOf(plural(rest.length, `more ${what}`), () => h("ul", { class: "lines" }, rest))];
}

function whySection() {
  if (several) return null;
  const reasons = (board.gate && board.gate.reasons) || [];
  // A page made with another baseline than the gate's compares with that one.
  const coverage = [].concat((report.comparison || {}).coverage || []).filter((line) => !reasons.includes(line));
  return [listOf([...reasons, ...coverage], SHOWN_REASONS, "reason"), listOf(board.remarks, SHOWN_REASONS, "remark", "note")];
}

function headline() {
  const { scored, collected } = board.counts;
  const gate = board.gate && !report.off ? ` The gate was \u201c${board.gate.mode}\u201d.` : "";
  const overall = board.complete ? "" : " There is no overall score.";
  const before = board.gate && board.gate.baseline;
  const compared = before ? ` Compared with ${before.path} (${before.adapter}, ${day(before.timestamp)}).` : "";
  return [
    h("strong", {}, visible(board.adapter)),
    `: ${count(scored)} of ${plural(collected, "example")} scored in ${plural(board.tasks.length, "task")}.${gate}${overall}`,
    visible(compared),
  ];
}

function figures() {
  const { errors, timeouts, below, unparsed, measured, quarantined, excluded, missing, cut_off: cutOff } = board.counts;
  const failed = report.examples.reduce((sum, tally) => sum + (tally.statuses.failed || 0), 0);
  const worse = sumOf("worse");
  const better = sumOf("better");
  const compared = report.has_baseline;
  const shown = [
    !IS_SCORED && figure("Overall score", score(board.overall_score), overallNote(), null),
    compared && figure("Got worse", count(worse), `${count(better)} got better`, worse && address({ show: "worse" })),
    (failed > 0 || !below) && figure("Failed", count(failed), below ? "each one fails the run" : "below their threshold", failed && address({ show: "failed" })),
    below > 0 && figure("Below", count(below), failed ? "below their threshold, tolerated" : "below their threshold", address({ show: "below" })),
    figure("Errors", count(errors + timeouts), errorNote(timeouts), errors + timeouts && address({ show: "errors" })),
    figure("Unparsed", count(unparsed), "nothing to extract", unparsed && address({ show: "unparsed" })),
    cutOff ? figure("Cut off", count(cutOff), "at the limit of tokens, or in thoughts", address({ show: "cut_off" })) : null,
    measured > 0 && figure("Measured", count(measured), "by aggregations only", address({ show: "measured" })),
    quarantined > 0 && figure("Quarantined", count(quarantined), "decide nothing for now", address({ show: "quarantined" })),
    excluded > 0 && figure("Excluded", count(excluded), "by a rule of the task", address({ show: "excluded" })),
    missing > 0 && figure("Missing", count(missing), "collected, then lost", null),
    report.latency && figure("Median latency", duration(report.latency.median), report.latency.p95 === null ? "" : `p95: ${duration(report.latency.p95)}`, null),
  ].filter(Boolean);
  const list = h("dl", { class: "figures" }, shown);
  // Rows of equal length: if two rows have an odd number of figures, the first takes two places.
  list.style.setProperty("--across", shown.length > MOST_ACROSS ? Math.ceil(shown.length / 2) : shown.length);
  list.classList.toggle("uneven", shown.length > MOST_ACROSS && shown.length % 2 === 1);
  return list;
}

const MOST_ACROSS = 6;

function figure(name, value, note, link) {
  const shown = link ? h("a", { href: link }, value, hidden(`: show these examples`)) : value;
  return h("div", {}, h("dt", {}, name), h("dd", {}, h("span", { class: "value" }, shown), h("span", { class: "note" }, note)));
}

function errorNote(timeouts) {
  return timeouts ? `of them ${plural(timeouts, "timeout")}` : "not scored";
}

function overallNote() {
  const floor = typeof report.overall_floor === "number" ? `, floor ${score(report.overall_floor)}` : "";
  const interval = board.overall_ci95;
  if (interval) return `95\u00a0%: ${score(interval[0])} to ${score(interval[1])}${floor}`;
  return `mean of ${plural(board.tasks.length, "task")}${floor}`;
}

function scoresSection() {
  if (several) return null;
  const { columns, rows } = report.scores;
  if (!rows.length) return h("p", {}, "No task was collected.");
  const own = { task: scoreName, axis: scoreAxis(), plot: (row) => scorePlot(row.score, row.ci95, row.min_score, row.old) };
  const kindOf = ({ kind, under, verdict }) => `${kind}${under || verdict === "regression" ? " troubled" : ""}`;
  const shown = declaredTable("Scores by task", columns, rows, own, { class: "scores" }, kindOf);
  const hasFloor = rows.some((row) => typeof row.min_score === "number");
  const sizes = board.tasks.map(({ task, total }) => [task, total]);
  return [legend(hasFloor, compared.size > 0), scroller("Scores by task", shown), smallTasks(sizes), csvButton("scores", () => csvOfTable(shown))];
}

// All tasks have equal weight in the mean. Names the small tasks if they make up half of its interval or more.
function smallTasks(sizes) {
  const held = sizes.filter(([, n]) => n > 0);
  const small = held.filter(([, n]) => n < SMALL);
  const shares = (some) => some.reduce((sum, [, n]) => sum + 1 / n, 0);
  if (small.length === held.length || 2 * shares(small) < shares(held)) return null;
  const named = small.length > 3 ? plural(small.length, "task") + ` with fewer than ${SMALL} examples` : small.map(([task, n]) => `${task} (${plural(n, "example")})`).join(", ");
  return h("p", { class: "note" }, visible(`Small tasks make the overall interval wide, because each task has the same weight: ${named}.`));
}

const SMALL = 20;

function scoreName({ kind, task, metric, verdict, under, min_score: floor }) {
  const name = { task: () => h("a", { href: address({ task }) }, visible(task)), named: () => visible(task), overall: () => "Overall" }[kind]();
  const tone = VERDICT_TAGS[verdict];
  return [
    [name, " ", kind === "named" && [h("span", { class: "note" }, visible(metric)), " "]],
    tone && h("span", { class: `tag ${tone}` }, verdict),
    under && h("span", { class: "tag bad" }, `below its floor ${score(floor, 2)}`),
  ];
}

function flipsSection(flip) {
  const total = sumOf(flip);
  if (!total) return null;
  const { found } = select({ task: null, show: flip, query: "", order: "drop" });
  const lines = found.slice(0, SHOWN_FLIPS).map((example) => flipRow(example, flip));
  const all = h("p", {}, h("a", { href: address({ show: flip }) }, `All ${count(total)} that got ${flip}`));
  return [scroller(`Examples that got ${flip}`, table(`Examples that got ${flip}`, ["Example", "Task", "Question", "Said", "Baseline", "Wanted"], lines, {})), all];
}

// Two long texts from shortly before their first difference.
function whereTheyPart(one, two) {
  let same = 0;
  while (same < Math.min(one.length, two.length) && one[same] === two[same]) same += 1;
  const from = same < ALIKE || one === two ? 0 : same - ALIKE / 2;
  return [one, two].map((text) => (from ? `\u2026${text.slice(from)}` : text));
}

const ALIKE = 40;

// A row of the overview's lists: a link to the example, and texts cut to a few words.
function gistRow(example, show, before, texts) {
  const link = h("a", { href: address({ show, of: example.task, id: example.id }) }, visible(example.id));
  const short = (text) => h("td", { class: "said" }, snippet(text || "", 60));
  return h("tr", {}, h("th", { scope: "row" }, link), h("td", { class: "in" }, visible(example.task)), before, texts.map(short));
}

function flipRow(example, flip) {
  const [said, before] = whereTheyPart(shortSaid(example) || "", beforeText(example, atLast) || "");
  return gistRow(example, flip, null, [questionText(example), said, before, firstWanted(example)]);
}

const FAILURES = [["failed", ["failed"]], ["below", ["below"]], ["errors", ["error", "timeout"]]];

// Without a baseline: the first examples that did not pass. Tasks in which all did are not read.
function failuresSection() {
  const counted = (statuses, tally) => statuses.reduce((sum, status) => sum + (tally.statuses[status] || 0), 0);
  const kinds = FAILURES.map(([show, statuses]) => [show, report.examples.reduce((sum, tally) => sum + counted(statuses, tally), 0)]).filter(([, n]) => n);
  if (!kinds.length) return null;
  const wanted = FAILURES.flatMap(([, statuses]) => statuses);
  const found = [];
  for (const tally of report.examples) {
    if (found.length < SHOWN_FLIPS && counted(wanted, tally)) found.push(...examplesOf(tally.task).filter((example) => wanted.includes(example.status)));
  }
  const all = kinds.map(([show, n], place) => [place > 0 && ", ", h("a", { href: address({ show }) }, `All ${count(n)} ${show}`)]);
  const head = ["Example", "Task", "Status", "Question", "Said", "Wanted"];
  const shown = table("Examples that did not pass", head, found.slice(0, SHOWN_FLIPS).map(failureRow), {});
  return [scroller("Examples that did not pass", shown), h("p", {}, all)];
}

function failureRow(example) {
  const [show] = FAILURES.find(([, statuses]) => statuses.includes(example.status));
  const texts = [questionText(example), example.error || shortSaid(example), firstWanted(example)];
  return gistRow(example, show, h("td", {}, statusMark(example)), texts);
}

function categoriesSection() {
  return breakdownTable("Scores by category", "Category", Object.entries(board.categories || {}));
}

function breakdownTable(caption, title, entries) {
  if (!entries.length) return null;
  const [first, ...others] = report.breakdown;
  const found = entries.map(([category, own]) => ({ category, ...own }));
  return scroller(caption, declaredTable(caption, [{ ...first, title }, ...others], found, { plot: (row) => bar(row.score) }, { class: "breakdown" }));
}
