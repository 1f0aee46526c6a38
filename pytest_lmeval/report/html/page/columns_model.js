// The page of several models: its columns, the best first, and what examples can be filtered and ordered by.

const { columns } = report;
const labels = columns.map((column) => column.label);
// An open example needs the whole width: list and example take turns on every screen.
const wide = { matches: false };
const LINKED = ["differs", "Models differ ", "differ"];
const LEDGER = " of each model.";
const KIND = "columns";
const CHOICES = report.picks;
const FURTHER = [...PICKS.map(([name]) => name), "model", "against"];

const PASSES = { passed: true, failed: false, below: false };
const own = (example, route) => example.columns[route.own];
const other = (example, route) => example.columns[route.other];

// Whether a model passed an example; undefined where that was not decided.
function passes(column) {
  return column ? PASSES[column.status] : undefined;
}

function isWorse(one, two) {
  return passes(one) === false && passes(two) === true;
}

function differs(example) {
  return example.columns.some((column) => (column || {}).status !== (example.columns[0] || {}).status);
}

const isChosen = (route) => route.own >= 0;
const FILTERS = [
  ["all", "All", () => true],
  ["differs", "Models differ", differs],
  ["failed", (route) => `Not passed by ${labels[route.own]}`, (example, route) => isChosen(route) && passes(own(example, route)) !== true],
  ["worse", (route) => `${labels[route.own]} worse than ${labels[route.other]}`, (example, route) => isChosen(route) && isWorse(own(example, route), other(example, route))],
  ["better", (route) => `${labels[route.own]} better than ${labels[route.other]}`, (example, route) => isChosen(route) && isWorse(other(example, route), own(example, route))],
  ["none", "Passed by none", (example) => !example.columns.some((column) => passes(column))],
  ["every", "Passed by all", (example) => example.columns.every((column) => passes(column))],
  ["prompts", "Prompt differs", (example) => Boolean(example.prompts_differ)],
  ["errors", "Errors", (example) => example.columns.some((column) => column && (column.status === "error" || column.status === "timeout"))],
];

const scoreOf = (column) => (column && typeof column.score === "number" ? column.score : null);

function lowest(example, route) {
  if (isChosen(route)) return known(scoreOf(own(example, route)));
  return Math.min(LAST, ...example.columns.map(scoreOf).filter((value) => value !== null));
}

// How far the chosen model is below the other one; without one, the best from the worst.
function gap(example, route) {
  if (!isChosen(route)) {
    const scores = example.columns.map(scoreOf).filter((value) => value !== null);
    return scores.length ? Math.max(...scores) - Math.min(...scores) : -LAST;
  }
  const [a, b] = [scoreOf(own(example, route)), scoreOf(other(example, route))];
  return a === null || b === null ? -LAST : b - a;
}

function most(example, route, of) {
  const chosen = isChosen(route) ? [own(example, route)] : example.columns;
  return Math.max(0, ...chosen.map((column) => (column && of(column)) || 0));
}

const costOf = (column) => (column.usage || {}).cost;
const ORDERS = [
  ["differs", "where models differ first", (a, b) => differs(b) - differs(a)],
  ["file", "as in the file", () => 0],
  ["gap", (route) => (isChosen(route) ? `${labels[route.own]} furthest below ${labels[route.other]}` : "largest difference first"), (a, b, route) => gap(b, route) - gap(a, route)],
  ["score", "lowest score first", (a, b, route) => lowest(a, route) - lowest(b, route)],
  ["slow", "slowest first", (a, b, route) => most(b, route, (one) => one.ms) - most(a, route, (one) => one.ms)],
  ["cost", "dearest first", (a, b, route) => most(b, route, costOf) - most(a, route, costOf)],
  ["id", "by id", (a, b) => a.id.localeCompare(b.id, "en", { numeric: true })],
];

// The two columns that the address names; by default the best and the one after it.
function settled(route) {
  const model = nameAmong(labels, route.model);
  const against = nameAmong(labels, route.against);
  const at = labels.indexOf(model);
  const beside = labels.indexOf(against);
  const fallback = at === 0 ? 1 : 0;
  return { ...route, model: at < 0 ? "" : model, against: beside < 0 || beside === at ? "" : against, own: at, other: beside < 0 || beside === at ? fallback : beside };
}

// A column with all that it shares with the others.
function wholeColumn(example, place) {
  const { columns: ignored, ...shared } = example;
  return { ...shared, ...example.columns[place] };
}

function pageName() {
  return labels.join(", ");
}

function brand() {
  return [plural(columns.length, "model"), report.comparison.timestamp && h("time", { datetime: report.comparison.timestamp }, day(report.comparison.timestamp))];
}

function footLine() {
  return h("p", {}, report.comparison.schema);
}

const strip = () => null;
const besideList = () => null;
