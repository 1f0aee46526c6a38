// The data blocks, and which examples are shown in which order.

const report = JSON.parse(document.getElementById("report-data").textContent);
const board = report.board;
const taskNames = report.examples.map((tally) => tally.task);
const parsed = new Map();
const rows = new Map(board.tasks.map((row) => [row.task, row]));
const compared = new Map(((report.comparison || {}).tasks || []).map((entry) => [entry.task, entry]));

// A task's examples are read when they are first looked at: the overview does not wait for them.
function loaded(place) {
  if (!parsed.has(place)) {
    const data = JSON.parse(document.getElementById(`task-${place}`).textContent);
    for (const example of data.examples) {
      example.task = taskNames[place];
      example.targets ||= [];
      example.answers ||= [];
    }
    parsed.set(place, data);
  }
  return parsed.get(place);
}

function examplesOf(task) {
  if (task !== null) return taskNames.includes(task) ? loaded(taskNames.indexOf(task)).examples : [];
  return taskNames.flatMap((_, place) => loaded(place).examples);
}

function promptOf(example) {
  return { shared: loaded(taskNames.indexOf(example.task)).prefix, own: example.prompt || "" };
}

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

const LAST = Number.MAX_VALUE;
const known = (value) => (value === null || value === undefined ? LAST : value);
const ORDERS = [
  ["file", "as in the file", () => 0],
  ["score", "lowest score first", (a, b) => known(a.score) - known(b.score)],
  ["drop", "largest drop first", (a, b) => drop(a) - drop(b)],
  ["slow", "slowest first", (a, b) => (b.ms || 0) - (a.ms || 0)],
  ["id", "by id", (a, b) => a.id.localeCompare(b.id, "en", { numeric: true })],
];

function drop(example) {
  const before = example.before;
  const comparable = before && !before.changed && typeof before.score === "number" && typeof example.score === "number";
  return comparable ? example.score - before.score : LAST;
}

function matcher(query) {
  const pattern = new RegExp(query.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
  return (example) =>
    pattern.test(example.id) ||
    pattern.test(example.prompt || "") ||
    example.targets.some((target) => pattern.test(target)) ||
    example.answers.some((answer) => pattern.test(answer.output) || pattern.test(answer.prediction || "")) ||
    stepsMatch(example, pattern) ||
    pattern.test(example.error || "") ||
    pattern.test(example.category || "");
}

function select(task, show, query, order) {
  const everything = examplesOf(task);
  const searched = query ? everything.filter(matcher(query)) : everything.slice();
  const [, , keep] = FILTERS.find(([name]) => name === show) || FILTERS[0];
  const [, , compareBy] = ORDERS.find(([name]) => name === order) || ORDERS[0];
  const found = searched.filter(keep);
  const tally = (examples) => new Map(FILTERS.map(([name, , test]) => [name, examples.filter(test).length]));
  return { found: order === "file" ? found : found.sort(compareBy), counts: tally(searched), totals: tally(everything) };
}

function predictionOf(answer) {
  return answer.prediction === undefined ? answer.output : answer.prediction;
}

// Where a program is run, what it should print is often nothing at all.
function wantedBy(example) {
  const says = example.targets.some((target) => target !== "") || !(example.details || {}).code_status;
  return says ? example.targets : [];
}

const STATUS = {
  passed: ["\u2713", "passed"],
  failed: ["\u2715", "failed"],
  below: ["\u25bd", "below"],
  error: ["!", "error"],
  timeout: ["\u2026", "timeout"],
  measured: ["\u223c", "measured"],
  quarantined: ["\u2016", "quarantined"],
  excluded: ["\u2013", "excluded"],
};

function statusMark(example) {
  const [glyph, word] = STATUS[example.status] || ["?", example.status];
  return h("span", { class: `status ${word}` }, h("span", { class: "glyph", "aria-hidden": "true" }, glyph), word);
}

// An address cannot hold half of a surrogate pair; a name may.
function nameInAddress(text) {
  return text.replace(/\p{Cs}/gu, codeName);
}

// Where to: everything a link needs to show the same thing to someone else.
function address({ task = null, show = "all", query = "", order = "file", page = 0, of = null, id = null }) {
  const values = { show: show === "all" ? "" : show, q: query, sort: order === "file" ? "" : order, page: page || "" };
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) search.set(name, value);
  if (id !== null && task === null) search.set("in", nameInAddress(of));
  if (id !== null) search.set("id", nameInAddress(id));
  const text = search.toString();
  const path = task === null ? "#/all" : `#/task/${encodeURIComponent(nameInAddress(task))}`;
  return text ? `${path}?${text}` : path;
}
