// The data blocks, the choice and order of examples, and the address of a view.

const report = JSON.parse(document.getElementById("report-data").textContent);
const board = report.board;
const taskNames = report.examples.map((tally) => tally.task);
const parsed = new Map();

// A task's examples are read when they are first looked at: the overview does not wait for them.
function loaded(place) {
  if (!parsed.has(place)) {
    const data = JSON.parse(document.getElementById(`task-${place}`).textContent);
    for (const [number, example] of data.examples.entries()) {
      example.task = taskNames[place];
      example.place = number;
      example.targets ||= [];
      example.answers ||= [];
      // An example of one model is its own column.
      example.columns ||= [example];
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

const LAST = Number.MAX_VALUE;
const known = (value) => (value === null || value === undefined ? LAST : value);

// Choices besides a filter: the name in the address, the label, and an example's values.
const PICKS = [
  ["category", "Category", (example) => (example.category ? [example.category] : [])],
  ["tag", "Tag", (example) => example.tags || []],
];

function matcher(query) {
  const pattern = new RegExp(query.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "i");
  return (example) => [...new Set([example, ...example.columns])].some((one) => one !== null && holds(one, pattern));
}

function holds(example, pattern) {
  return (
    pattern.test(example.id || "") ||
    pattern.test(example.prompt || "") ||
    (example.targets || []).some((target) => pattern.test(target)) ||
    (example.answers || []).some((answer) => pattern.test(answer.output) || pattern.test(answer.prediction || "")) ||
    stepsMatch(example, pattern) ||
    turnsMatch(example, pattern) ||
    pattern.test(example.error || "") ||
    pattern.test(example.category || "") ||
    (example.tags || []).some((tag) => pattern.test(tag))
  );
}

function select(route) {
  const everything = examplesOf(route.task);
  const wanted = PICKS.filter(([name]) => route[name]).map(([name, , of]) => (example) => of(example).includes(route[name]));
  if (route.query) wanted.push(matcher(route.query));
  const searched = everything.filter((example) => wanted.every((test) => test(example)));
  const [, , keep] = FILTERS.find(([name]) => name === route.show) || FILTERS[0];
  const [, , compareBy] = ORDERS.find(([name]) => name === route.order) || ORDERS[0];
  const found = searched.filter((example) => keep(example, route));
  const tally = (examples) => new Map(FILTERS.map(([name, , test]) => [name, examples.filter((example) => test(example, route)).length]));
  const counts = tally(searched);
  return { found: found.sort((a, b) => compareBy(a, b, route)), counts, totals: wanted.length ? tally(everything) : counts };
}

function predictionOf(answer) {
  return answer.prediction === undefined ? answer.output : answer.prediction;
}

// The wanted output of a program is often empty.
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

// The address of a view: everything that a link needs to show it again.
function address({ task = null, show = "all", query = "", order = ORDERS[0][0], page = 0, of = null, id = null, ...others }) {
  const values = { show: show === "all" ? "" : show, q: query, sort: order === ORDERS[0][0] ? "" : order, page: page || "" };
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value) search.set(name, value);
  for (const name of FURTHER) if (others[name]) search.set(name, nameInAddress(others[name]));
  if (id !== null && task === null) search.set("in", nameInAddress(of));
  if (id !== null) search.set("id", nameInAddress(id));
  const text = search.toString();
  const path = task === null ? "#/all" : `#/task/${encodeURIComponent(nameInAddress(task))}`;
  return text ? `${path}?${text}` : path;
}

// Decodes a name in an address.
function nameAmong(names, text) {
  const name = names.find((one) => nameInAddress(one) === text);
  return name === undefined ? text : name;
}

function readRoute() {
  const [path, search = ""] = location.hash.slice(1).split("?");
  const values = new URLSearchParams(search);
  const task = path.startsWith("/task/") ? nameAmong(taskNames, decoded(path.slice(6))) : null;
  const view = path === "/all" || task !== null ? "list" : "overview";
  const page = Math.max(0, Number.parseInt(values.get("page") || "0", 10) || 0);
  const show = FILTERS.some(([name]) => name === values.get("show")) ? values.get("show") : "all";
  const order = ORDERS.some(([name]) => name === values.get("sort")) ? values.get("sort") : ORDERS[0][0];
  const id = values.get("id");
  const further = Object.fromEntries(FURTHER.map((name) => [name, values.get(name) || ""]));
  return settled({ view, task, show, query: values.get("q") || "", order, page, of: id === null ? null : task === null ? values.get("in") : task, id, ...further });
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
