// The examples of a task, or of all: filters, a search, and a table of one page.

const PAGE_SIZE = 100;

function filterBar(route, counts, totals, go) {
  const offered = FILTERS.filter(([name]) => name === "all" || totals.get(name) || route.show === name);
  const choices = offered.map(([name, label]) => filterChoice(route, name, label, counts.get(name), go));
  return h(
    "form",
    { class: "filters", role: "search", "aria-label": "Examples", onsubmit: (event) => event.preventDefault() },
    h("div", { class: "searching" }, searchField(route, go), orderField(route, go)),
    h("fieldset", {}, h("legend", { class: "hidden" }, "Show"), choices),
  );
}

function filterChoice(route, name, label, n, go) {
  const checked = route.show === name;
  const change = () => go({ ...route, show: name, page: 0, of: null, id: null });
  const input = h("input", { type: "radio", name: "show", value: name, checked, onchange: change });
  return h("label", { class: "choice" }, input, h("span", {}, label, " ", h("span", { class: "n" }, count(n))));
}

function searchField(route, go) {
  let waiting = 0;
  const search = (event) => {
    clearTimeout(waiting);
    const query = event.target.value;
    waiting = setTimeout(() => go({ ...route, query, page: 0, of: null, id: null }), 120);
  };
  const attributes = { type: "search", id: "search", autocomplete: "off", spellcheck: "false", placeholder: "Search prompts, outputs, targets" };
  const field = h("input", { ...attributes, "aria-keyshortcuts": "/", oninput: search });
  field.value = route.query;
  return h("label", { class: "search" }, hidden("Search in prompts, outputs and targets"), field, h("kbd", { "aria-hidden": "true" }, "/"));
}

function orderField(route, go) {
  const offered = ORDERS.filter(([name]) => name !== "drop" || report.has_baseline);
  const options = offered.map(([value, label]) => h("option", { value, selected: route.order === value }, label));
  const change = (event) => go({ ...route, order: event.target.value, page: 0 });
  return h("label", { class: "order" }, hidden("Order"), h("select", { id: "order", onchange: change }, options));
}

function listStatus(route, found) {
  const what = FILTERS.find(([name]) => name === route.show) || FILTERS[0];
  const kind = what[0] === "all" ? "" : `, ${what[1].toLowerCase()}`;
  const matching = route.query ? [`, matching \u201c`, visible(route.query), "\u201d"] : "";
  const from = route.page * PAGE_SIZE;
  const part = found.length > PAGE_SIZE ? `; ${count(from + 1)} to ${count(Math.min(found.length, from + PAGE_SIZE))} shown` : "";
  return [plural(found.length, "example"), kind, matching, part];
}

function exampleTable(route, found) {
  const shown = found.slice(route.page * PAGE_SIZE, (route.page + 1) * PAGE_SIZE);
  const withTask = route.task === null;
  const head = ["Status", "Example", numberHead("Score")];
  const lines = shown.map((example) => exampleRow(route, example, withTask));
  return shown.length ? table("Examples", head, lines, { class: "examples" }) : h("p", { class: "none" }, "No example is like that.");
}

function isOpen(route, example) {
  const of = route.task === null ? nameInAddress(example.task) : route.of;
  return route.id === nameInAddress(example.id) && of === route.of;
}

function linkTo(route, example) {
  return address({ ...route, of: example.task, id: example.id, page: 0 });
}

function exampleRow(route, example, withTask) {
  const open = isOpen(route, example);
  const link = h("a", { href: linkTo(route, example), tabindex: open ? "0" : "-1", "aria-current": open ? "true" : null }, visible(example.id));
  const task = withTask && h("span", { class: "of" }, visible(example.task));
  return h(
    "tr",
    { class: open ? "open" : null },
    h("td", {}, statusMark(example), flipMark(example)),
    h("th", { scope: "row" }, link, task, h("span", { class: "gist" }, gist(example))),
    number(score(example.score, 2)),
  );
}

function flipMark(example) {
  if (!example.flip) return null;
  const glyph = example.flip === "worse" ? "\u2198" : "\u2197";
  return h("span", { class: `flip ${example.flip}` }, h("span", { "aria-hidden": "true" }, glyph), ` ${example.flip}`);
}

function gist(example) {
  if (example.error) return snippet(example.error, 70);
  if (example.runs) return snippet(runGist(example.runs) || example.prompt || "", 70);
  if (!example.answers.length) return "";
  const prediction = predictionOf(example.answers[0]);
  const said = prediction ? h("q", { class: "said" }, snippet(prediction, 44)) : h("span", { class: "nothing" }, "(empty)");
  const code = (example.details || {}).code_status;
  if (code) return [said, code === "pass" ? null : ` ${String(code).replace("_", " ")}`];
  if (example.status === "passed" || !example.targets.length) return said;
  return [said, " wanted ", h("q", { class: "said" }, snippet(example.targets[0], 34))];
}

function runGist(runs) {
  const [said] = runs.map((run) => run.reason || verdictsOf(run)[0]).filter(Boolean);
  return said;
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
  return h("p", { class: "note left-out" }, text, " All of them are in ", h("code", {}, "ledger.jsonl"), " beside this report.");
}
