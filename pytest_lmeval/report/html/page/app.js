// The view for an address, and the keys.

const main = document.getElementById("main");
let current = null;
let listed = [];

// Text that a reader types changes the address without a step in the history for each letter.
function replaceRoute(route) {
  history.replaceState(null, "", address(route));
  show();
}

function show() {
  const route = readRoute();
  const sameList = current !== null && current.view === "list" && route.view === "list" && current.task === route.task;
  const kept = keptFocus();
  if (route.view === "overview") showOverview();
  else showList(route, sameList);
  topBar(route);
  if (!sameList || kept === null) settle(route, sameList);
  else restoreFocus(kept);
  current = route;
}

function showOverview() {
  listed = [];
  document.title = visible(`${pageName()} - evaluation report`).textContent;
  main.className = `overview ${KIND}`;
  document.body.className = "";
  main.replaceChildren(...overviewView().filter(Boolean));
}

function showList(route, sameList) {
  const { found, counts, totals } = select(route);
  listed = found;
  const open = route.id === null ? null : examplesOf(route.task).find((example) => isOpen(route, example)) || null;
  // The page of the open example takes precedence over the page in the address.
  if (open && found.includes(open)) route.page = Math.floor(found.indexOf(open) / PAGE_SIZE);
  route.page = Math.min(route.page, Math.max(0, Math.ceil(found.length / PAGE_SIZE) - 1));
  const name = listTitle(route);
  document.title = visible(`${open ? `${open.id} - ` : ""}${name} - ${pageName()}`).textContent;
  main.className = `list ${KIND}${open ? " has-open" : ""}`;
  document.body.className = "fills";
  if (!sameList) main.replaceChildren(...listFrame(route));
  main.querySelector("h1").replaceChildren(visible(name));
  renderPanes(route, { found, counts, totals }, open);
}

function listFrame(route) {
  return [
    h("div", { class: "list-head" }, h("h1", { tabindex: "-1" }), h("div", { id: "strip" }, strip(route.task))),
    h("section", { class: "pane", "aria-label": "List of examples" }, h("div", { id: "filters" }), h("p", { id: "found", role: "status" }), h("div", { id: "rows" })),
    h("section", { class: "detail", id: "detail", "aria-label": "Details", tabindex: "0" }),
  ];
}

function renderPanes(route, { found, counts, totals }, open) {
  const get = (id) => document.getElementById(id);
  const field = get("search");
  if (!field || document.activeElement !== field) get("filters").replaceChildren(filterBar(route, counts, totals, replaceRoute));
  else updateFilters(route, counts, totals);
  const status = h("p", {}, listStatus(route, found));
  if (get("found").textContent !== status.textContent) get("found").replaceChildren(...status.childNodes);
  const kept = get("rows").scrollTop;
  get("rows").replaceChildren(...[leftOutNote(route.task), exampleTable(route, found), pager(route, found)].filter(Boolean));
  get("rows").scrollTop = kept;
  makeReachable();
  const missing = route.id !== null && !open ? h("p", { class: "note warn" }, "This example is not on this page: it may be left out, see the ledger.") : null;
  const content = open ? examplePane(route, open, found) : [missing, besideList(route, found)];
  get("detail").replaceChildren(...h("div", {}, content).childNodes);
  if (!current || current.id !== route.id) get("detail").scrollTop = 0;
}

// While the reader types, the field stays the same element, and only its neighbours change.
function updateFilters(route, counts, totals) {
  const fresh = filterBar(route, counts, totals, replaceRoute);
  document.querySelector(".filters fieldset").replaceWith(fresh.querySelector("fieldset"));
  document.querySelector(".further").replaceWith(fresh.querySelector(".further"));
}

// The tab key stops once in the list: at the open example, or else at the first.
function makeReachable() {
  const links = [...document.querySelectorAll(".examples tbody a")];
  if (links.length && !links.some((link) => link.tabIndex === 0)) links[0].tabIndex = 0;
}

function keptFocus() {
  const active = document.activeElement;
  if (!active || active === document.body || active === main) return null;
  if (active.closest(".examples")) return ["row", active.getAttribute("href")];
  if (active.id) return ["id", active.id];
  if (active.name === "show") return ["show", active.value];
  if (active.closest(".steps")) return ["step", active.getAttribute("aria-keyshortcuts")];
  return null;
}

function restoreFocus([kind, key]) {
  if (kind === "id" && document.activeElement.id === key) return;
  const found = {
    row: () => document.querySelector(".examples tr.open a") || rowLinks().find((link) => link.getAttribute("href") === key) || rowLinks()[0],
    id: () => document.getElementById(key),
    show: () => document.querySelector(".filters input:checked"),
    step: () => document.querySelector(`.steps a[aria-keyshortcuts="${key}"]`) || document.getElementById("example-title"),
  }[kind]();
  if (found) found.focus({ preventScroll: kind !== "row" });
  if (kind === "row" && wide.matches === false && readRoute().id !== null) focusExample();
}

// After a change of view the reader starts at its heading.
function settle(route, sameList) {
  if (current === null && route.id === null) return;
  if (route.view === "list" && route.id !== null) {
    revealOpen();
    if (!sameList || !wide.matches) focusExample();
  } else if (!sameList) {
    const heading = main.querySelector("h1");
    if (heading) heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

function focusExample() {
  const title = document.getElementById("example-title");
  if (title) title.focus({ preventScroll: true });
  if (!wide.matches) scrollTo(0, 0);
}

function revealOpen() {
  const row = document.querySelector(".examples tr.open");
  if (row) row.scrollIntoView({ block: "nearest" });
}

function rowLinks() {
  return [...document.querySelectorAll(".examples tbody a")];
}

// The sum of a count over all tasks.
function sumOf(name) {
  return report.examples.reduce((sum, tally) => sum + tally[name], 0);
}

function ownLinks(route, link) {
  const [show, title, counted] = LINKED;
  const onAll = route.view === "list" && route.task === null;
  return [
    link(address({}), "All examples", onAll && route.show !== show),
    sumOf(counted) > 0 && link(address({ show }), [title, h("span", { class: "n" }, count(sumOf(counted)))], onAll && route.show === show),
  ];
}

function topBar(route) {
  const link = (href, text, here) => h("a", { href, "aria-current": here ? "page" : null }, text);
  document.getElementById("top").replaceChildren(
    h("p", { class: "brand" }, h("b", {}, "lmeval"), " ", brand()),
    h("nav", { "aria-label": "Report" }, link("#/", "Overview", route.view === "overview"), ownLinks(route, link), taskPicker(route), linkButton()),
  );
}

function taskPicker(route) {
  const options = taskNames.map((name) => h("option", { value: name, selected: name === route.task }, visible(name).textContent));
  const go = (event) => event.target.value && (location.hash = address({ task: event.target.value }));
  return h("label", { class: "picker" }, hidden("Task"), h("select", { id: "picker", onchange: go }, h("option", { value: "" }, "Task \u2026"), options));
}

function day(timestamp) {
  return String(timestamp).replace("T", " ").replace(/(\.\d+)?Z$/, " UTC");
}

function footer() {
  const key = (name, text) => h("span", {}, h("kbd", {}, name), ` ${text}`);
  const keys = [key("j", "next"), key("k", "previous"), key("[ ]", "pages"), key("Enter", "open"), key("/", "search"), key("Esc", "back")];
  document.getElementById("foot").replaceChildren(h("p", { class: "keys" }, "Keys: ", keys), footLine());
}

function step(offset) {
  const route = readRoute();
  if (route.view !== "list" || !listed.length) return;
  const onRow = document.activeElement.closest(".examples");
  if (!wide.matches && route.id === null && onRow) return stepRow(offset);
  const at = listed.findIndex((example) => isOpen(route, example));
  const next = listed[at === -1 ? (offset > 0 ? 0 : listed.length - 1) : at + offset];
  if (!next) return;
  history.replaceState(null, "", linkTo(route, next));
  show();
  revealOpen();
}

function turnPage(offset) {
  const route = readRoute();
  const page = current.page + offset;
  if (route.view !== "list" || page < 0 || page * PAGE_SIZE >= listed.length) return false;
  location.hash = address({ ...route, page, of: null, id: null });
  return true;
}

// On a narrow screen the list and the example take turns: there, arrows only move along the list.
function stepRow(offset) {
  const links = rowLinks();
  const next = links[links.indexOf(document.activeElement) + offset];
  if (!next) return;
  document.activeElement.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

function back() {
  const route = readRoute();
  if (route.id !== null) {
    const place = rowLinks().findIndex((one) => one.hasAttribute("aria-current"));
    location.hash = address({ ...route, of: null, id: null, page: current.page });
    show();
    const link = rowLinks()[Math.max(0, place)];
    if (link) link.focus();
  } else if (route.view === "list") location.hash = "#/";
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target;
  if (field.matches("input[type=search], select, textarea")) {
    if (event.key === "Escape" && field.id === "search") leaveSearch(event);
    return;
  }
  const onRow = field.closest(".examples") !== null;
  const actions = {
    "/": () => (document.getElementById("search") || document.getElementById("picker")).focus(),
    j: () => step(1),
    k: () => step(-1),
    "]": () => turnPage(1),
    "[": () => turnPage(-1),
    ArrowDown: () => (onRow ? step(1) : false),
    ArrowUp: () => (onRow ? step(-1) : false),
    Escape: back,
    Enter: () => (onRow && wide.matches && readRoute().id !== null && field.closest("tr.open") ? focusExample() : false),
  };
  const action = actions[event.key];
  if (action && action() !== false) event.preventDefault();
}

function leaveSearch(event) {
  event.preventDefault();
  event.target.blur();
  const first = rowLinks().find((link) => link.tabIndex === 0);
  if (first) first.focus();
}

document.addEventListener("keydown", onKey);
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", show);
footer();
show();
