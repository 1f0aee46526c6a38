// The page of one model: what its examples can be filtered and ordered by, and what is around its views.

const rows = new Map(board.tasks.map((row) => [row.task, row]));
const compared = new Map(((report.comparison || {}).tasks || []).map((entry) => [entry.task, entry]));
const wide = matchMedia("(min-width: 66rem)");
const LEDGER = " beside this report.";
const KIND = "one";
const CHOICES = { category: Object.keys(board.categories || {}), tag: report.tags };
const FURTHER = PICKS.map(([name]) => name);

const FILTERS = [
  ["all", "All", () => true],
  ["worse", "Got worse", (example) => example.flip === "worse"],
  ["better", "Got better", (example) => example.flip === "better"],
  ["flipped", "Flipped", (example) => Boolean(example.flip)],
  ["failed", "Failed", (example) => example.status === "failed"],
  ["below", "Below", (example) => example.status === "below"],
  ["errors", "Errors", (example) => example.status === "error" || example.status === "timeout"],
  ["unparsed", "Unparsed", (example) => Boolean(example.unparsed)],
  ["cut_off", "Cut off", (example) => Boolean(example.cut_off)],
  ["measured", "Measured", (example) => example.status === "measured"],
  ["quarantined", "Quarantined", (example) => example.status === "quarantined"],
  ["excluded", "Excluded", (example) => example.status === "excluded"],
  ["passed", "Passed", (example) => example.status === "passed"],
];

const ORDERS = [
  ["file", "as in the file", () => 0],
  ["score", "lowest score first", (a, b) => known(a.score) - known(b.score)],
  ["drop", "largest drop first", (a, b) => drop(a) - drop(b), () => report.has_baseline],
  ["slow", "slowest first", (a, b) => (b.ms || 0) - (a.ms || 0)],
  ["id", "by id", (a, b) => a.id.localeCompare(b.id, "en", { numeric: true })],
];

function drop(example) {
  const before = example.before;
  const comparable = before && !before.changed && typeof before.score === "number" && typeof example.score === "number";
  return comparable ? example.score - before.score : LAST;
}

// Which filter is in the top bar, its name there, and what of a task's tally it counts.
const LINKED = ["worse", "Got worse ", "worse"];
const settled = (route) => route;

function pageName() {
  return board.adapter;
}

function brand() {
  return [visible(board.adapter), h("time", { datetime: board.timestamp }, day(board.timestamp))];
}

function footLine() {
  return h("p", {}, "digest ", h("code", {}, String(board.digest).slice(0, 16)), `, ${board.schema}`);
}

function strip(task) {
  const row = rows.get(task);
  if (!row) return null;
  const entry = compared.get(task) || {};
  const interval = row.ci95 ? ` (${score(row.ci95[0])} to ${score(row.ci95[1])})` : "";
  const before = typeof entry.old === "number" ? `, baseline ${score(entry.old)}` : "";
  return h("p", {}, "score ", h("b", {}, score(row.score)), interval, before);
}

function besideList(route, found) {
  return route.task === null ? tasksPane(route, found) : summaryPane(route.task);
}
