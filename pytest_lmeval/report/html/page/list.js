// The examples of a task, or of all: filters, a search, and a table of one page.

const PAGE_SIZE = 100;

function filterBar(route, counts, totals, go) {
  const offered = FILTERS.filter(([name]) => name === "all" || totals.get(name) || route.show === name);
  const choices = offered.map(([name, label]) => filterChoice(route, name, wordsFor(label, route), counts.get(name), go));
  return h(
    "form",
    { class: "filters", role: "search", "aria-label": "Examples", onsubmit: (event) => event.preventDefault() },
    h("div", { class: "searching" }, searchField(route, go), furtherFields(route, go)),
    h("fieldset", {}, h("legend", { class: "hidden" }, "Show"), choices),
  );
}

// With several models, the words name the chosen one.
function wordsFor(words, route) {
  return typeof words === "function" ? words(route) : words;
}

// The title of the list: its task, its filter, or both.
function listTitle({ task, show, ...route }) {
  const filter = show === "all" ? "" : wordsFor(FILTERS.find(([name]) => name === show)[1], route);
  return task === null ? filter || "All examples" : filter ? `${task}: ${lowered(filter)}` : task;
}

function filterChoice(route, name, label, n, go) {
  const checked = route.show === name;
  const change = () => go({ ...route, show: name, page: 0, of: null, id: null });
  const input = h("input", { type: "radio", name: "show", value: name, checked, onchange: change });
  return h("label", { class: "choice" }, input, h("span", {}, label, " ", h("span", { class: "n" }, count(n))));
}

// The fields beside the search, which change while the reader types.
function furtherFields(route, go) {
  const csv = csvButton("examples", () => csvOfExamples(select(route).found));
  return h("div", { class: "further" }, ownFields(route, go), PICKS.map((pick) => pickField(route, pick, go)), orderField(route, go), csv);
}

function pickField(route, [name, label], go) {
  const offered = report.picks[name];
  if (!offered.length) return null;
  const options = offered.map((value) => h("option", { value, selected: route[name] === value }, visible(value).textContent));
  const change = (event) => go({ ...route, [name]: event.target.value, page: 0, of: null, id: null });
  return h("label", { class: "pick" }, hidden(label), h("select", { id: `pick-${name}`, onchange: change }, h("option", { value: "" }, `${label}: all`), options));
}

function lowered(text) {
  return text[0].toLowerCase() + text.slice(1);
}

function searchField(route, go) {
  let waiting = 0;
  const search = (event) => {
    clearTimeout(waiting);
    const query = event.target.value;
    waiting = setTimeout(() => go({ ...route, query, page: 0, of: null, id: null }), 120);
  };
  const attributes = { type: "search", id: "search", autocomplete: "off", spellcheck: "false", placeholder: "Search texts" };
  const field = h("input", { ...attributes, "aria-keyshortcuts": "/", oninput: search });
  field.value = route.query;
  return h("label", { class: "search" }, hidden("Search in prompts, outputs and targets"), field, h("kbd", { "aria-hidden": "true" }, "/"));
}

function orderField(route, go) {
  const options = ORDERS.map(([value, label]) => h("option", { value, selected: route.order === value }, wordsFor(label, route)));
  const change = (event) => go({ ...route, order: event.target.value, page: 0 });
  return h("label", { class: "order" }, hidden("Order"), h("select", { id: "order", onchange: change }, options));
}

function listStatus(route, found) {
  const what = FILTERS.find(([name]) => name === route.show) || FILTERS[0];
  const kind = what[0] === "all" ? "" : [", ", lowered(wordsFor(what[1], route))];
  const matching = route.query ? [`, matching \u201c`, visible(route.query), "\u201d"] : "";
  const from = route.page * PAGE_SIZE;
  const part = found.length > PAGE_SIZE ? `; ${count(from + 1)} to ${count(Math.min(found.length, from + PAGE_SIZE))} shown` : "";
  return [plural(found.length, "example"), kind, matching, part];
}

function exampleTable(route, found) {
  const shown = found.slice(route.page * PAGE_SIZE, (route.page + 1) * PAGE_SIZE);
  return shown.length ? tableOfExamples(route, shown) : h("p", { class: "none" }, "No example is like that.");
}

function isOpen(route, example) {
  const of = route.task === null ? nameInAddress(example.task) : route.of;
  return route.id === nameInAddress(example.id) && of === route.of;
}

function linkTo(route, example) {
  return address({ ...route, of: example.task, id: example.id, page: 0 });
}

function pager(route, found) {
  const pages = Math.ceil(found.length / PAGE_SIZE);
  if (pages < 2) return null;
  const step = (page, label, enabled) => {
    const target = address({ ...route, page, of: null, id: null });
    return enabled ? h("a", { href: target }, label) : h("span", { class: "off", "aria-hidden": "true" }, label);
  };
  return h(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    step(route.page - 1, "\u2190 Previous", route.page > 0),
    h("span", {}, `Page ${count(route.page + 1)} of ${count(pages)}`),
    step(route.page + 1, "Next \u2192", route.page < pages - 1),
  );
}

function leftOutNote(task) {
  const tallies = report.examples.filter((tally) => task === null || tally.task === task);
  const left = {};
  for (const tally of tallies) for (const [status, n] of Object.entries(tally.left_out)) left[status] = (left[status] || 0) + n;
  const total = tallies.reduce((sum, tally) => sum + tally.total, 0);
  const missing = Object.values(left).reduce((sum, n) => sum + n, 0);
  if (!missing) return null;
  const kinds = Object.entries(left).map(([status, n]) => `${count(n)} ${status}`).join(", ");
  const text = `This page holds ${count(total - missing)} of ${plural(total, "example")}, the most telling first. Left out: ${kinds}.`;
  return h("p", { class: "note left-out" }, text, " All of them are in ", h("code", {}, "ledger.jsonl"), LEDGER);
}

// The links above an open example: to the list, and to the examples before and after it.
function exampleSteps(route, example, found) {
  const place = found.indexOf(example);
  const step = (offset, label, key) => {
    const other = found[place + offset];
    return other ? h("a", { href: linkTo(route, other), "aria-keyshortcuts": key }, label) : h("span", { class: "off", "aria-hidden": "true" }, label);
  };
  return h(
    "nav",
    { class: "steps", "aria-label": "Examples in this list" },
    h("a", { href: address({ ...route, of: null, id: null, page: Math.floor(Math.max(0, place) / PAGE_SIZE) }), class: "close" }, "Close", h("kbd", { "aria-hidden": "true" }, "Esc")),
    h("span", { class: "place" }, place < 0 ? "not in this list" : `${count(place + 1)} of ${count(found.length)}`),
    step(-1, "\u2191 Previous", "k"),
    step(1, "\u2193 Next", "j"),
  );
}
