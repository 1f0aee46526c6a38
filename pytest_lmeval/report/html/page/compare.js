// Several models side by side. Texts of models are only ever set as text.
const data = JSON.parse(document.getElementById("comparison-data").textContent);
const { comparison, examples } = data;
const labels = comparison.models.map((model) => model.label);
const PAGE = 25;
const state = { show: "all", page: 0, find: "" };

function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}

const number = (value, digits) => (value === null || value === undefined ? "\u2013" : Number(value).toFixed(digits));

const intervalOf = (ends) => (ends ? `${number(ends[0], 3)} to ${number(ends[1], 3)}` : "\u2013");

function verdictOf(model) {
  if (!model.complete) return "incomplete";
  return model.gated ? model.verdict : "not gated";
}

function standings() {
  const ranking = comparison.ranking;
  const by = new Map(((ranking || {}).standings || []).map((each) => [each.name, each]));
  const order = [...by.keys(), ...labels.filter((label) => !by.has(label))];
  const models = new Map(comparison.models.map((model) => [model.label, model]));
  const rows = order.map((label) => {
    const each = by.get(label) || {};
    const model = models.get(label);
    const tied = ranking && ranking.not_worse.includes(label);
    return h("tr", tied ? { class: "best" } : {}, h("td", {}, label), h("td", {}, verdictOf(model)), h("td", {}, number(each.score ?? model.overall_score, 4)), h("td", {}, String(model.counts.scored)), h("td", {}, number(each.difference, 4)), h("td", {}, intervalOf(each.difference_ci95)), h("td", {}, each.difference === undefined || each.difference === null ? "\u2013" : Number(each.p_adjusted).toPrecision(2)), h("td", {}, number(model.spent.p95_ms, 1)), h("td", {}, (model.spent.cost_known === undefined ? "" : ">= ") + number(model.spent.cost, 4)));
  });
  const heads = ["model", "verdict", "score", "scored", "to the best", "interval", "p", "p95 ms", "cost"].map((text) => h("th", { scope: "col" }, text));
  const told = h("ul", { id: "remarks" }, data.remarks.map((remark) => h("li", {}, remark)));
  const reasons = comparison.models.flatMap((model) => model.reasons.map((reason) => h("li", {}, `${model.label}: ${verdictOf(model)}: ${reason}`)));
  const why = reasons.length > 0 && h("ul", { id: "reasons" }, reasons);
  return [h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows))), told, why].filter(Boolean);
}

function matches(example) {
  if (state.find && !`${example.task} ${example.id} ${example.prompt}`.toLowerCase().includes(state.find)) return false;
  if (state.show === "all") return true;
  if (state.show === "differs") return example.differs;
  const answer = example.answers[labels.indexOf(state.show)];
  return !answer || answer.status !== "passed";
}

function answerPart(label, answer) {
  if (!answer) return h("div", {}, h("b", {}, label), h("p", { class: "note" }, "no result"));
  const score = answer.score === null ? "" : ` ${Number(answer.score.toFixed(4))}`;
  return h("div", {}, h("b", {}, label), " ", h("span", { class: answer.status }, `${answer.status}${score}`), h("pre", { tabindex: "0" }, answer.output || "(empty)"), answer.prediction !== undefined && [h("span", { class: "note" }, "prediction"), h("pre", {}, answer.prediction || "(empty)")]);
}

function examplePart(example) {
  const prompt = h("details", {}, h("summary", {}, "Prompt"), h("pre", {}, example.prompt));
  return h("article", { class: "example", tabindex: "-1" }, h("h2", {}, `${example.task}: ${example.id}`), prompt, h("p", {}, h("span", { class: "note" }, "wanted: "), example.targets.join(" | ")), h("div", { class: "answers" }, labels.map((label, place) => answerPart(label, example.answers[place]))));
}

const list = h("div", { id: "examples" });
const place = h("span", { role: "status" });

function draw() {
  const found = examples.filter(matches);
  const pages = Math.max(1, Math.ceil(found.length / PAGE));
  state.page = Math.min(Math.max(0, state.page), pages - 1);
  list.replaceChildren(...found.slice(state.page * PAGE, (state.page + 1) * PAGE).map(examplePart));
  place.textContent = `${found.length} example(s), page ${state.page + 1} of ${pages}${data.left_out ? `; ${data.left_out} are left out here` : ""}`;
}

function turn(step) {
  state.page += step;
  draw();
  window.scrollTo(0, 0);
}

function controls() {
  const option = (value, text) => h("option", { value }, text);
  const choose = h("select", { "aria-label": "Show", onchange: (event) => { state.show = event.target.value; state.page = 0; draw(); } }, option("all", "all examples"), option("differs", "where the models differ"), labels.map((label) => option(label, `not passed by ${label}`)));
  const find = h("input", { type: "search", placeholder: "find", "aria-label": "Find", oninput: (event) => { state.find = event.target.value.toLowerCase(); state.page = 0; draw(); } });
  return h("div", { class: "bar" }, choose, find, h("button", { onclick: () => turn(-1) }, "Previous page"), h("button", { onclick: () => turn(1) }, "Next page"), place, h("span", { class: "note" }, "keys: j, k, [, ]"));
}

document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...list.children];
  const at = all.indexOf(document.activeElement ? document.activeElement.closest(".example") : null);
  if (event.key === "j" && all.length) all[Math.min(at + 1, all.length - 1)].focus();
  else if (event.key === "k" && all.length) all[Math.max(at - 1, 0)].focus();
  else if (event.key === "]") turn(1);
  else if (event.key === "[") turn(-1);
});

document.getElementById("main").replaceChildren(...standings(), controls(), list);
draw();
document.documentElement.dataset.ready = "true";
