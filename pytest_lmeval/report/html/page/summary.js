// The facts about a task besides its examples.

function summaryPane(task) {
  const row = rows.get(task);
  if (!row) return h("p", { class: "note" }, "Choose an example.");
  const entry = compared.get(task);
  return [
    h("h2", {}, "About this task"),
    h("div", { class: "own-plot" }, scoreAxis(), scorePlot(row.score, row.ci95, row.min_score, (entry || {}).old)),
    facts([
      ["Metric", visible(row.metric)],
      ["Correct", row.measured ? null : `${count(row.correct)} of ${count(row.total)}`],
      ["Threshold", row.measured ? "none: measured by aggregations only" : row.threshold === null ? "differs between examples" : score(row.threshold, 2)],
      ["Score", row.measured ? row.measured.score_metric ? visible(`the metric ${row.measured.score_metric}`) : "none" : null],
      ["Floor", row.min_score === null ? null : score(row.min_score, 3)],
      ["Standard error", row.stderr === null ? null : score(row.stderr, 4)],
      ["Unparsed", row.unparsed ? count(row.unparsed) : null],
      ["Cut off", row.cut_off ? count(row.cut_off) : null],
      ["Errors, timeouts", row.errors + row.timeouts ? `${count(row.errors)}, ${count(row.timeouts)}` : null],
      ["Quarantined", row.quarantined ? count(row.quarantined) : null],
      ["Excluded", row.excluded ? count(row.excluded) : null],
      ["Duration of an example", (row.spent || {}).duration_p50_ms === undefined ? null : durations(row.spent)],
      ["Mean latency", row.latency_ms === null ? null : duration(row.latency_ms)],
      ["File", row.path ? h("code", {}, visible(row.path)) : null],
      ["SHA-256", row.sha256 ? h("code", {}, row.sha256.slice(0, 16) + "\u2026") : null],
    ]),
    part("Against the baseline", entry && comparedFacts(entry)),
    part("Metrics", Object.keys(row.metrics || {}).length > 1 && facts(named(row.metrics))),
    part("Excluded by", row.notes && row.notes.actions && facts(Object.entries(row.notes.actions).map(([key, n]) => [visible(key), `${count(n)} row(s)`]))),
    part("Labels without a weight", left((row.notes || {}).without_weight)),
    part("Neither answer", left({ "": (row.notes || {}).neither_answer || {} })),
    part("Not worked out", row.notes && row.notes.left_out && facts(Object.entries(row.notes.left_out).map(([key, why]) => [visible(key), visible(String(why))]))),
    part("Repeats", row.repeats && facts(named(row.repeats))),
    part("Subjects", subjects(row)),
    part("Classes", classes(row)),
    part("Confusion", confusion(row)),
    part("Calibration", row.calibration && facts(named(row.calibration))),
  ];
}

// The origin of the examples of a list.
function tasksPane(route, found) {
  const counts = new Map();
  for (const example of found) counts.set(example.task, (counts.get(example.task) || 0) + 1);
  const lines = [...counts].sort((a, b) => b[1] - a[1]).map(([task, n]) => {
    const link = h("a", { href: address({ ...route, task, page: 0, of: null, id: null }) }, task);
    return h("tr", {}, h("th", { scope: "row" }, link), number(count(n)), h("td", { class: "plotted" }, bar(n / found.length)));
  });
  const head = ["Task", numberHead("Examples"), h("th", { scope: "col" }, hidden("Plot"))];
  return lines.length ? [h("h2", {}, "By task"), table("Examples of this list by task", head, lines, {})] : null;
}

// The number of rows that aggregations omitted, by aggregation and kind.
function left(notes) {
  const lines = Object.entries(notes || {}).flatMap(([name, kinds]) =>
    Object.entries(kinds).map(([kind, n]) => [visible(name ? `${name}: ${kind}` : kind), `${count(n)} row(s)`]));
  return lines.length ? facts(lines) : null;
}

function durations(spent) {
  const slow = spent.duration_p95_ms === undefined ? "" : `, p95 ${duration(spent.duration_p95_ms)}`;
  return `median ${duration(spent.duration_p50_ms)}${slow}`;
}

function comparedFacts(entry) {
  return facts([
    ["Baseline", score(entry.old)],
    ["Change", changeText(entry)],
    ["p", pText(entry.verdict === "uncompared" ? null : entry.p_adjusted ?? entry.p)],
    ["Paired examples", entry.paired === undefined ? null : count(entry.paired)],
    ["Worse, better", entry.worse === undefined ? null : `${counted(entry.worse)}, ${counted(entry.better)}`],
    ["Smallest drop it could have shown", typeof entry.detectable === "number" ? score(entry.detectable) : null],
    ["Verdict", entry.verdict ? visible(String(entry.verdict)) : null],
  ]);
}

function counted(value) {
  return count(Array.isArray(value) ? value.length : value || 0);
}

function changeText(entry) {
  const interval = entry.interval && ` (confidence interval ${FORMATS["change interval"](entry.interval)})`;
  return `${change(entry.change)}${interval || ""}`;
}

function subjects(row) {
  return breakdownTable("Scores by subject", "Subject", Object.entries(row.subjects || {}));
}

function classes(row) {
  const entries = Object.entries(row.classes || {});
  if (!entries.length) return null;
  const names = ["precision", "recall", "f1"];
  const lines = entries.map(([label, values]) =>
    h("tr", {}, h("th", { scope: "row" }, visible(label)), names.map((name) => number(score(values[name]))), number(count(values.n))),
  );
  const head = ["Class", numberHead("Precision"), numberHead("Recall"), numberHead("F1"), numberHead("Examples")];
  return scroller("Classes", table("Precision, recall and F1 by class", head, lines, {}));
}

// {right label: {predicted label: how often}}
function confusion(row) {
  const matrix = row.confusion || {};
  const actual = Object.keys(matrix);
  if (!actual.length) return null;
  const labels = [...new Set([...actual, ...actual.flatMap((label) => Object.keys(matrix[label]))])];
  const lines = actual.map((label) => {
    const total = Object.values(matrix[label]).reduce((sum, n) => sum + n, 0);
    const cells = labels.map((other) => confusionCell(matrix[label][other] || 0, total, other === label));
    return h("tr", {}, h("th", { scope: "row" }, snippet(label, 24)), cells);
  });
  const head = [h("th", { scope: "col" }, "right \u2193 said \u2192"), ...labels.map((label) => h("th", { scope: "col", class: "number" }, snippet(label, 24)))];
  return scroller("Confusion matrix", table("Rows: the right label. Columns: what was said.", head, lines, { class: "confusion" }));
}

function confusionCell(n, total, right) {
  const cell = h("td", { class: right ? "number right" : "number wrong" }, n ? count(n) : "\u00b7");
  cell.style.setProperty("--share", total ? (n / total).toFixed(3) : "0");
  return cell;
}
