// The first view: the verdict and why, then the scores, then everything one may want to know of the run.

const VERDICT_TAGS = { regression: "bad", inconclusive: "warn", improvement: "good", stale: "warn", uncompared: "soft" };
const SHOWN_FLIPS = 8;
const SHOWN_REASONS = 12;

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

function verdict() {
  const gate = board.gate;
  const off = gate && gate.mode === "none" && gate.verdict === "pass";
  const [tone, glyph, word] = off ? NOT_GATED : (gate && VERDICTS[gate.verdict]) || withoutGate(gate);
  const reasons = (gate && gate.reasons) || [];
  const warnings = ((gate && gate.warnings) || []).map((warning) => h("p", { class: "note warn" }, visible(String(warning))));
  const remarks = (board.remarks || []).map((remark) => h("p", { class: "note" }, visible(String(remark))));
  // A page made with another baseline than the gate's compares with that one.
  const coverage = [].concat((report.comparison || {}).coverage || []).filter((line) => !reasons.includes(line));
  const shown = [...reasons, ...coverage].map((reason) => h("li", {}, visible(String(reason))));
  return h(
    "div",
    { class: `verdict ${tone}` },
    h("h1", { tabindex: "-1" }, h("span", { class: "glyph", "aria-hidden": "true" }, glyph), word),
    h("p", { class: "lead" }, headline()),
    shown.length > 0 && h("ul", {}, shown.slice(0, SHOWN_REASONS)),
    shown.length > SHOWN_REASONS && moreReasons(shown.slice(SHOWN_REASONS)),
    warnings,
    remarks,
  );
}

function withoutGate(gate) {
  if (!board.complete) return VERDICTS.incomplete;
  return ["", "\u2022", gate ? String(gate.verdict) : "Complete"];
}

function moreReasons(rest) {
  return foldOf(`${plural(rest.length, "more reason")}`, () => h("ul", {}, rest));
}

function headline() {
  const { scored, collected } = board.counts;
  const gate = board.gate ? ` The gate was ${board.gate.mode === "none" ? "off" : `\u201c${board.gate.mode}\u201d`}.` : "";
  const overall = board.complete ? "" : " There is no overall score.";
  const before = board.gate && board.gate.baseline;
  const compared = before ? ` Compared with ${before.path} (${before.adapter}, ${before.timestamp}).` : "";
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
  return h(
    "dl",
    { class: "figures" },
    figure("Overall score", score(board.overall_score), overallNote(), null),
    compared && figure("Got worse", count(worse), `${count(better)} got better`, worse && address({ show: "worse" })),
    (failed > 0 || !below) && figure("Failed", count(failed), "below their threshold", failed && address({ show: "failed" })),
    below > 0 && figure("Below", count(below), "below their threshold", address({ show: "below" })),
    figure("Errors", count(errors + timeouts), errorNote(timeouts), errors + timeouts && address({ show: "errors" })),
    figure("Unparsed", count(unparsed), "nothing to extract", unparsed && address({ show: "unparsed" })),
    cutOff ? figure("Cut off", count(cutOff), "at the limit of tokens, or in thoughts", address({ show: "cut_off" })) : null,
    measured > 0 && figure("Measured", count(measured), "by aggregations only", address({ show: "measured" })),
    quarantined > 0 && figure("Quarantined", count(quarantined), "decide nothing for now", address({ show: "quarantined" })),
    excluded > 0 && figure("Excluded", count(excluded), "by a rule of the task", address({ show: "excluded" })),
    missing > 0 && figure("Missing", count(missing), "collected, then lost", null),
    report.latency && figure("Median latency", duration(report.latency.median), `90\u00a0%: ${duration(report.latency.p90)}`, null),
  );
}

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
  return [legend(hasFloor, compared.size > 0), scroller("Scores by task", shown), csvButton("scores", () => csvOfTable(shown))];
}

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

// Of two long texts that begin alike, what comes where they part.
function whereTheyPart(one, two) {
  let same = 0;
  while (same < Math.min(one.length, two.length) && one[same] === two[same]) same += 1;
  const from = same < ALIKE || one === two ? 0 : same - ALIKE / 2;
  return [one, two].map((text) => (from ? `\u2026${text.slice(from)}` : text));
}

const ALIKE = 40;

// A row of the overview's lists: what leads to the example, and texts cut to a few words.
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
