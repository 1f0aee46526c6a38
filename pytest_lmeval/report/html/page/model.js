// Filters and orders of examples, for one model and its baseline, or for several models.

const { columns } = report;
const labels = columns.map((column) => column.label);
const shortLabels = columns.map((column) => column.short || column.label);
const several = report.models !== undefined;
const rows = new Map((board.tasks || []).map((row) => [row.task, row]));
const compared = new Map(((report.comparison || {}).tasks || []).map((entry) => [entry.task, entry]));
// An example of several models needs the whole width: list and example take turns on every screen.
const wide = several ? { matches: false } : matchMedia("(min-width: 66rem)");
const LEDGER = several ? " of each model." : " beside this report.";
const KIND = several ? "columns" : "one";
const FURTHER = [...PICKS.map(([name]) => name), "model", "against"];
// The filters in the top bar: name, label, and the count in a task's tally.
const LINKED = several ? ["differs", "Models differ ", "differ"] : ["worse", "Got worse ", "worse"];

const PASSES = { passed: true, failed: false, below: false };
const own = (example, route) => example.columns[route.own];
const other = (example, route) => example.columns[route.other];
const isChosen = (route) => several && route.own >= 0;

// A column with the fields that all columns share.
function wholeColumn(example, place) {
  const { columns: held, ...shared } = example;
  return held[place] === example ? example : { ...shared, ...held[place] };
}

// True if a model passed an example; undefined if that was not decided.
function passes(column) {
  return column ? PASSES[column.status] : undefined;
}

function isWorse(one, two) {
  return passes(one) === false && passes(two) === true;
}

// The direction in which an example differs from the baseline, or the chosen model from the other one.
function flipOf(example, route) {
  if (!isChosen(route)) return example.flip;
  const pair = [own(example, route), other(example, route)];
  return isWorse(...pair) ? "worse" : isWorse(...pair.reverse()) ? "better" : undefined;
}

const differs = (example) => Boolean(example.differs);

// The name of a model; a long name is shortened, with the whole name as its title.
function labelOf({ label, short }) {
  return short ? h("span", { title: label }, visible(short)) : visible(label);
}

const some = (test) => (example) => example.columns.some((column) => column !== null && test(column));
const has = (...statuses) => some(({ status }) => statuses.includes(status));
const isFailed = has("failed");
const FILTERS = [
  ["all", "All", () => true],
  ["differs", "Models differ", differs],
  ["worse", (route) => (several ? `${shortLabels[route.own]} worse than ${shortLabels[route.other]}` : "Got worse"), (example, route) => flipOf(example, route) === "worse"],
  ["better", (route) => (several ? `${shortLabels[route.own]} better than ${shortLabels[route.other]}` : "Got better"), (example, route) => flipOf(example, route) === "better"],
  ["flipped", "Flipped", (example, route) => Boolean(flipOf(example, route))],
  ["failed", (route) => (isChosen(route) ? `Not passed by ${shortLabels[route.own]}` : "Failed"), (example, route) => (isChosen(route) ? passes(own(example, route)) !== true : isFailed(example))],
  ["below", "Below", has("below")],
  ["errors", "Errors", has("error", "timeout")],
  ["unparsed", "Unparsed", some((column) => column.unparsed)],
  ["cut_off", "Cut off", some((column) => column.cut_off)],
  ["measured", "Measured", has("measured")],
  ["quarantined", "Quarantined", has("quarantined")],
  ["excluded", "Excluded", has("excluded")],
  ["none", "Passed by none", (example) => several && !example.columns.some(passes)],
  ["passed", several ? "Passed by all" : "Passed", (example) => example.columns.every(passes)],
  ["prompts", "Prompt differs", (example) => Boolean(example.prompts_differ)],
];

const scoreOf = (column) => (column && typeof column.score === "number" ? column.score : null);
const costOf = (column) => (column.usage || {}).cost;

function lowest(example, route) {
  if (isChosen(route)) return known(scoreOf(own(example, route)));
  return Math.min(LAST, ...example.columns.map(scoreOf).filter((value) => value !== null));
}

// The score by which a model is below its baseline, the chosen model below the other, or the last below the best.
function gap(example, route) {
  if (several && !isChosen(route)) {
    const scores = example.columns.map(scoreOf).filter((value) => value !== null);
    return scores.length ? Math.max(...scores) - Math.min(...scores) : -LAST;
  }
  const { before } = example;
  const [now, then] = (several ? [own(example, route), other(example, route)] : [example, before && !before.changed ? before : null]).map(scoreOf);
  return now === null || then === null ? -LAST : then - now;
}

function most(example, route, of) {
  const chosen = isChosen(route) ? [own(example, route)] : example.columns;
  return Math.max(0, ...chosen.map((column) => (column && of(column)) || 0));
}

const ORDERS = [
  ["differs", "where models differ first", (a, b) => differs(b) - differs(a), several],
  ["file", "as in the file", () => 0, true],
  ["score", "lowest score first", (a, b, route) => lowest(a, route) - lowest(b, route), true],
  ["drop", (route) => (isChosen(route) ? `${shortLabels[route.own]} furthest below ${shortLabels[route.other]}` : several ? "largest difference first" : "largest drop first"), (a, b, route) => gap(b, route) - gap(a, route), several || report.has_baseline],
  ["slow", "slowest first", (a, b, route) => most(b, route, (one) => one.ms) - most(a, route, (one) => one.ms), true],
  ["cost", "dearest first", (a, b, route) => most(b, route, costOf) - most(a, route, costOf), true],
  ["id", "by id", (a, b) => a.id.localeCompare(b.id, "en", { numeric: true }), true],
].filter(([, , , isOffered]) => isOffered);

// The two columns that the address names; by default the best and the one after it.
function settled(route) {
  const model = nameAmong(labels, route.model);
  const against = nameAmong(labels, route.against);
  const at = labels.indexOf(model);
  const beside = labels.indexOf(against);
  const fallback = at === 0 ? 1 : 0;
  return { ...route, model: at < 0 ? "" : model, against: beside < 0 || beside === at ? "" : against, own: at, other: beside < 0 || beside === at ? fallback : beside };
}

function pageName() {
  return labels.join(", ");
}

function brand() {
  const { timestamp } = report;
  return [several ? plural(columns.length, "model") : visible(labels[0]), timestamp && h("time", { datetime: timestamp }, day(timestamp))];
}

function footLine() {
  return h("p", {}, board.digest && ["digest ", h("code", {}, board.digest.slice(0, 16)), ", "], report.schema);
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
  if (several) return null;
  return route.task === null ? tasksPane(route, found) : summaryPane(route.task);
}
