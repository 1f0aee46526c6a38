// The list: a row for each example, a column for each model, the best first.

const SHORT_PROMPT = 300;
const SHORT_ANSWER = 400;

function ownFields(route, go) {
  if (!several) return null;
  const chosen = (name, label, none) => {
    const options = labels.map((text, place) => h("option", { value: place, selected: text === route[name] }, visible(text).textContent));
    const change = (event) => go({ ...route, [name]: event.target.value === "" ? "" : labels[event.target.value], page: 0, of: null, id: null });
    return h("label", { class: "pick" }, hidden(label), h("select", { id: `pick-${name}`, onchange: change }, h("option", { value: "" }, none), options));
  };
  const best = visible(labels[route.own === 0 ? 1 : 0]).textContent;
  return [chosen("model", "Model", "Any model"), isChosen(route) && chosen("against", "Beside", `beside ${best}`)];
}

function tableOfExamples(route, shown) {
  const head = [h("th", { scope: "col", class: "asked" }, "Example"), ...columns.map((column, place) => columnHead(route, column, place))];
  const found = table("Examples", head, shown.map((example) => exampleRow(route, example)), { class: "examples matrix" });
  found.style.setProperty("--columns", head.length);
  return found;
}

function columnHead(route, column, place) {
  const here = isChosen(route) && place === route.own;
  const target = address({ ...route, model: here ? "" : column.label, page: 0, of: null, id: null });
  const name = several ? h("a", { href: target, "aria-current": here ? "true" : null }, labelOf(column)) : labelOf(column);
  return h("th", { scope: "col", class: here ? "chosen" : null }, name, h("span", { class: "note" }, ` ${score(column.score)}`));
}

function exampleRow(route, example) {
  const open = isOpen(route, example);
  const link = h("a", { href: linkTo(route, example), tabindex: open ? "0" : "-1", "aria-current": open ? "true" : null }, visible(example.id));
  const task = route.task === null && h("span", { class: "of" }, visible(example.task));
  const [wanted, ...others] = wantedBy(example);
  const cells = columns.map((_, place) => h("td", { class: place === route.own ? "chosen" : null }, cell(example, place, wanted)));
  return h("tr", { class: open ? "open" : null }, h("th", { scope: "row", class: "asked" }, link, task, promptGist(example), wantedGist(wanted, others.length)), cells);
}

// A short prompt is shown whole, and a long one by its question.
function promptGist(example) {
  const { shared, own: rest } = promptOf(example);
  const isShort = !shared && !example.function && rest.length <= SHORT_PROMPT;
  const text = isShort ? rest.trim() : questionText(example);
  const tag = example.prompts_differ && h("span", { class: "tag" }, "prompts differ");
  return [text && h("span", { class: isShort ? "gist asked-for" : "gist" }, isShort ? visible(text) : snippet(text, 120)), tag];
}

function wantedGist(wanted, others) {
  return wanted !== undefined && h("span", { class: "gist wanted" }, "wanted ", h("q", { class: "said" }, wanted === "" ? "(empty)" : snippet(wanted, 80)), others > 0 && ` or ${plural(others, "other")}`);
}

function cell(example, place, wanted) {
  if (example.columns[place] === null) return h("span", { class: "nothing" }, "no result");
  const column = wholeColumn(example, place);
  const value = typeof column.score === "number" ? ` ${Number(column.score.toFixed(4))}` : "";
  return [h("span", { class: "verdict-line" }, statusMark(column), h("b", {}, value), flipMark(column)), h("span", { class: "took" }, tookText(column)), cellAnswer(column, wanted)];
}

function flipMark(example) {
  if (!example.flip) return null;
  const glyph = example.flip === "worse" ? "\u2198" : "\u2197";
  return h("span", { class: `flip ${example.flip}` }, h("span", { "aria-hidden": "true" }, glyph), ` ${example.flip}`);
}

// The text that was read from an output precedes it, and the reason why it failed follows.
function cellAnswer(column, wanted) {
  // For a conversation, the last answer suffices.
  const [first] = column.runs || (column.details || {}).turns ? [] : column.answers;
  const said = column.error || (first ? first.output : shortSaid(column));
  const answer = said === null ? runGist(column.runs || []) || "" : said;
  const read = first && !column.error && first.prediction !== undefined && h("span", { class: "read" }, snippet(first.prediction, 80) || "(empty)");
  const why = said === null || column.error || column.status === "passed" ? null : whyGist(column, wanted);
  return [read, answer === "" ? h("span", { class: "nothing" }, "(empty)") : h("span", { class: "gist said", dir: "auto" }, snippet(answer, SHORT_ANSWER)), why && h("span", { class: "gist why" }, why)];
}

// The wanted answer of all models, beside the question.
function whyGist(column, shown) {
  const { code_status: code, reason } = column.details || {};
  if (code) return code === "pass" ? null : String(code).replace("_", " ");
  if (column.runs) return snippet(runGist(column.runs) || "", 110);
  const wanted = firstWanted(column);
  return [wanted !== undefined && wanted !== shown && ["wanted ", h("q", { class: "said" }, snippet(wanted, 34))], typeof reason === "string" && [" ", snippet(reason, 110)]];
}

function tookText(column) {
  const cost = costOf(column);
  return [typeof column.ms === "number" && duration(column.ms), typeof cost === "number" && `cost ${costText(cost)}`].filter(Boolean).join(", ");
}

function csvOfExamples(found) {
  const own = {
    status: (one) => one.status,
    score: (one) => one.score,
    answer: saidText,
    ...(several ? {} : { baseline: (one) => beforeText(one) }),
    ms: (one) => one.ms,
    cost: costOf,
    error: (one) => one.error,
  };
  const of = (name) => (several ? labels.map((label) => `${label}: ${name}`) : [name]);
  const head = ["task", "id", "threshold", "category", "tags", "question", "wanted", ...Object.keys(own).flatMap(of)];
  return [head, ...found.map((example) => {
    const { task, id, threshold, category, tags = [] } = example;
    const held = columns.map((_, place) => (example.columns[place] ? wholeColumn(example, place) : null));
    return [task, id, threshold, category, tags.join(" | "), questionText(example), wantedBy(example).join(" | "), ...Object.values(own).flatMap((fact) => held.map((one) => one && fact(one)))];
  })];
}
