// The matrix: a row for each example, a column for each model, the best first.

const SHORT_PROMPT = 300;
const SHORT_ANSWER = 400;

function ownFields(route, go) {
  const chosen = (name, label, none, value) => {
    const options = labels.map((text, place) => h("option", { value: place, selected: text === route[name] }, visible(text).textContent));
    const change = (event) => go({ ...route, [name]: event.target.value === "" ? "" : labels[event.target.value], page: 0, of: null, id: null });
    return h("label", { class: "pick" }, hidden(label), h("select", { id: `pick-${name}`, onchange: change }, h("option", { value: "" }, none), options));
  };
  const best = visible(labels[route.own === 0 ? 1 : 0]).textContent;
  return [chosen("model", "Model", "Any model"), isChosen(route) && chosen("against", "Beside", `beside ${best}`)];
}

function tableOfExamples(route, shown) {
  const head = [h("th", { scope: "col", class: "asked" }, "Example"), ...columns.map((column, place) => columnHead(route, column, place))];
  return table("Examples by model", head, shown.map((example) => matrixRow(route, example)), { class: "examples matrix" });
}

function columnHead(route, column, place) {
  const here = place === route.own;
  const link = h("a", { href: address({ ...route, model: here ? "" : column.label, page: 0, of: null, id: null }), "aria-current": here ? "true" : null }, visible(column.label));
  return h("th", { scope: "col", class: here ? "chosen" : null }, link, h("span", { class: "note" }, ` ${score(column.score)}`));
}

function matrixRow(route, example) {
  const link = h("a", { href: linkTo(route, example), tabindex: "-1" }, visible(example.id));
  const task = route.task === null && h("span", { class: "of" }, visible(example.task));
  const cells = columns.map((_, place) => h("td", { class: place === route.own ? "chosen" : null }, cell(example, place)));
  return h("tr", {}, h("th", { scope: "row", class: "asked" }, link, task, promptGist(example)), cells);
}

// A short prompt is shown whole, of a long one the question.
function promptGist(example) {
  const { shared, own: rest } = promptOf(example);
  const isShort = !shared && !example.function && rest.length <= SHORT_PROMPT;
  const text = isShort ? rest.trim() : questionText(example);
  const tag = example.prompts_differ && h("span", { class: "tag" }, "prompts differ");
  return [text && h("span", { class: isShort ? "gist asked-for" : "gist" }, isShort ? visible(text) : snippet(text, 120)), tag];
}

function cell(example, place) {
  if (example.columns[place] === null) return h("span", { class: "nothing" }, "no result");
  const column = wholeColumn(example, place);
  const value = typeof column.score === "number" ? ` ${Number(column.score.toFixed(4))}` : "";
  return [h("span", { class: "verdict-line" }, statusMark(column), h("b", {}, value)), h("span", { class: "took" }, tookText(column)), cellAnswer(column)];
}

// What was read from an output goes before it; of a function that answered nothing, why it failed.
function cellAnswer(column) {
  const [first] = column.answers;
  const said = column.error || (first && !column.runs ? first.output : saidText(column));
  const answer = said === null ? runGist(column.runs || []) || "" : said;
  const read = first && !column.error && first.prediction !== undefined && h("span", { class: "read" }, snippet(first.prediction, 80) || "(empty)");
  return [read, answer === "" ? h("span", { class: "nothing" }, "(empty)") : h("span", { class: "gist said", dir: "auto" }, snippet(answer, SHORT_ANSWER))];
}

function tookText(column) {
  const cost = costOf(column);
  return [typeof column.ms === "number" && duration(column.ms), typeof cost === "number" && `cost ${costText(cost)}`].filter(Boolean).join(", ");
}

function csvOfExamples(found) {
  const of = (name) => labels.map((label) => `${label}: ${name}`);
  const head = ["task", "id", "question", "wanted", ...["status", "score", "ms", "cost", "answer"].flatMap(of)];
  const facts = [(one) => one.status, (one) => one.score, (one) => one.ms, costOf, (one) => one.error || saidText(one)];
  return [head, ...found.map((example) => {
    const held = columns.map((_, place) => (example.columns[place] ? wholeColumn(example, place) : null));
    return [example.task, example.id, questionText(example), example.targets.join(" | "), ...facts.flatMap((fact) => held.map((one) => one && fact(one)))];
  })];
}
