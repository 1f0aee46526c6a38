// One example: what was asked, and beside each other what each model answered and how that was scored.

function examplePane(route, example, found) {
  return [
    exampleSteps(route, example, found),
    h("h2", { id: "example-title", tabindex: "-1" }, visible(example.id), " ", h("span", { class: "of" }, visible(example.task))),
    askedPart(example),
    wantedPart(example),
    h("div", { class: "beside", role: "region", "aria-label": "Answers by model", tabindex: "0" }, columns.map((column, place) => columnPart(example, column, place))),
    part("Changed words", diffPart(route, example)),
    part("Prompts", promptDiff(route, example)),
  ];
}

function askedPart(example) {
  if (!example.function) return part(example.prompts_differ ? `Prompt of ${labels[firstOf(example)]}` : "Prompt", promptPart(example));
  const row = example.prompt === "{}" ? null : fold("The row", example.prompt);
  return [part("Question", questionBlock(example)), row];
}

function firstOf(example) {
  return example.columns.findIndex((column) => column !== null);
}

function wantedPart(example) {
  const wanted = wantedBy(example);
  return wanted.length > 0 && part(wantedTitle(example.metric, wanted), targets(wanted));
}

function columnPart(example, column, place) {
  const title = h("h3", {}, visible(column.label));
  if (example.columns[place] === null) return h("article", {}, h("header", {}, title), h("p", { class: "nothing" }, "no result"));
  const held = wholeColumn(example, place);
  const link = column.page && h("a", { href: `${column.page}${pageAddress(example, column)}` }, "on its own page", hidden(` (${column.label})`));
  return h(
    "article",
    {},
    h("header", {}, title, h("p", { class: "result" }, statusMark(held), scoreText(held)), h("p", { class: "note" }, tookText(held), " ", link)),
    h("div", { class: "answered" }, columnBody(held), foldOf("Details", () => h("div", {}, detailsPart({ ...held, item: undefined })))),
  );
}

// What the page of the model itself calls this example.
function pageAddress(example, column) {
  const path = `#/task/${encodeURIComponent(nameInAddress(example.task + column.suffix))}`;
  return `${path}?${new URLSearchParams({ id: nameInAddress(example.id) })}`;
}

function columnBody(held) {
  const first = held.answers[0];
  const isRead = first && first.prediction !== undefined;
  return [
    reasonParts(held),
    notesOn(held),
    isRead && part("Prediction", block(withEdges(first.prediction), { class: "said" })),
    answerParts(held),
    held.runs && functionParts(held),
  ];
}

// The two columns that the reader has chosen, the second as it differs from the first.
function diffPart(route, example) {
  const [from, to] = diffed(route);
  const texts = [from, to].map((place) => (example.columns[place] ? fullText(wholeColumn(example, place)) : null));
  const choose = h("p", { class: "choose" }, columnField(route, "against", "From", from), columnField(route, "model", "To", to));
  if (texts.includes(null)) return [choose, h("p", { class: "note" }, "One of the two has no answer to show.")];
  return [choose, wordDiff(...texts, ["The two answers are the same, character for character.", "The two answers have little in common."], [labels[from], labels[to]])];
}

function diffed(route) {
  return isChosen(route) ? [route.other, route.own] : [0, 1];
}

function columnField(route, name, label, at) {
  const options = labels.map((text, place) => h("option", { value: place, selected: place === at }, visible(text).textContent));
  const [from, to] = diffed(route);
  const change = (event) => {
    const pair = { against: labels[from], model: labels[to], [name]: labels[event.target.value] };
    // The same name twice: the two change places.
    if (pair.against === pair.model) pair[name === "model" ? "against" : "model"] = labels[at];
    replaceRoute({ ...route, ...pair });
  };
  return h("label", { class: "pick" }, `${label} `, h("select", { id: `diff-${name}`, onchange: change }, options));
}

function fullText(column) {
  if (column.runs) return saidText(column);
  return column.answers.length ? column.answers[0].output : null;
}

function wordDiff(before, after, [same, apart], [one, two]) {
  if (before === after) return h("p", { class: "note" }, same);
  const runs = diff(before, after);
  if (sharedPart(runs) < LEAST_SHARED) return h("p", { class: "note" }, apart);
  return [h("p", { class: "note" }, h("del", {}, "only ", visible(one)), " ", h("ins", {}, "only ", visible(two))), diffBlock(runs)];
}

function promptDiff(route, example) {
  if (!example.prompts_differ) return null;
  const [from, to] = diffed(route);
  const prompts = [from, to].map((place) => (example.columns[place] ? wholeColumn(example, place).prompt || "" : null));
  if (prompts.includes(null)) return h("p", { class: "note" }, "One of the two has no result.");
  const said = wordDiff(...prompts, ["The two were asked with the same prompt.", "The two prompts have little in common."], [labels[from], labels[to]]);
  const alone = [from, to].map((place, index) => foldOf(["The prompt of ", visible(labels[place])], () => block(visible(prompts[index]))));
  return [said, alone];
}
