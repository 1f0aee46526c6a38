// The list of examples of one model: a row for each.

function tableOfExamples(route, shown) {
  const lines = shown.map((example) => exampleRow(route, example));
  return table("Examples", ["Status", "Example", numberHead("Score")], lines, { class: "examples" });
}

const ownFields = () => null;

function exampleRow(route, example) {
  const open = isOpen(route, example);
  const link = h("a", { href: linkTo(route, example), tabindex: open ? "0" : "-1", "aria-current": open ? "true" : null }, visible(example.id));
  const task = route.task === null && h("span", { class: "of" }, visible(example.task));
  const question = questionText(example);
  return h(
    "tr",
    { class: open ? "open" : null },
    h("td", {}, statusMark(example), flipMark(example)),
    h("th", { scope: "row" }, link, task, question && h("span", { class: "gist" }, snippet(question, 110)), h("span", { class: "gist" }, gist(example))),
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
  const text = shortSaid(example);
  if (text === null) return example.runs ? snippet(runGist(example.runs) || "", 110) : "";
  const said = text ? h("q", { class: "said" }, snippet(text, 60)) : h("span", { class: "nothing" }, "(empty)");
  const code = (example.details || {}).code_status;
  if (code) return [said, code === "pass" ? null : ` ${String(code).replace("_", " ")}`];
  if (example.status === "passed") return said;
  if (example.runs) return [said, " ", snippet(runGist(example.runs) || "", 110)];
  const { reason } = example.details || {};
  const wanted = firstWanted(example);
  return [said, wanted !== undefined && [" wanted ", h("q", { class: "said" }, snippet(wanted, 34))], typeof reason === "string" && [" ", snippet(reason, 110)]];
}

function csvOfExamples(found) {
  const head = ["task", "id", "status", "score", "threshold", "category", "tags", "question", "answer", "wanted", "baseline", "ms", "cost", "error"];
  const line = (example) => [
    ...[example.task, example.id, example.status, example.score, example.threshold, example.category, (example.tags || []).join(" | ")],
    ...[questionText(example), saidText(example), wantedBy(example).join(" | "), beforeText(example), example.ms, (example.usage || {}).cost, example.error],
  ];
  return [head, ...found.map(line)];
}
