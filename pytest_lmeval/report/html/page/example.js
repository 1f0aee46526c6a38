// One example: its question, the answer and scores of each model, and how two answers differ.

function examplePane(route, example, found) {
  const task = several && [" ", h("span", { class: "of" }, visible(example.task))];
  return [
    exampleSteps(route, example, found),
    h("h2", { id: "example-title", tabindex: "-1" }, visible(example.id), task),
    several ? besideEachOther(route, example) : alone(example),
  ];
}

function besideEachOther(route, example) {
  const wanted = wantedBy(example);
  return [
    part("Question", questionBlock(example)),
    example.function ? example.prompt !== "{}" && fold("The row", example.prompt) : part(example.prompts_differ ? `Prompt of ${labels[firstOf(example)]}` : "Prompt", promptPart(example)),
    wanted.length > 0 && part(wantedTitle(example.metric, wanted), targets(wanted)),
    h("div", { class: "beside", role: "region", "aria-label": "Answers by model", tabindex: "0" }, columns.map((column, place) => columnPart(example, column, place))),
    part("Changed words", diffPart(route, example)),
    part("Prompts", promptDiff(route, example)),
  ];
}

function alone(example) {
  return [
    h("p", { class: "result" }, statusMark(example), flipMark(example), scoreText(example), example.must_pass && h("span", { class: "tag" }, "must pass")),
    part("Question", questionBlock(example)),
    columnBody(example, wantedBy(example)),
    baselinePart(example),
    example.runs ? part("Row", rowPart(example.prompt || "")) : part("Prompt", promptPart(example)),
    oldPromptPart(example),
    part("Details", detailsPart(example)),
    part("Run it again", rerun(example)),
  ];
}

function firstOf(example) {
  return example.columns.findIndex((column) => column !== null);
}

function columnPart(example, column, place) {
  const title = h("h3", {}, labelOf(column));
  if (example.columns[place] === null) return h("article", {}, h("header", {}, title), h("p", { class: "nothing" }, "no result"));
  const held = wholeColumn(example, place);
  const link = column.page && h("a", { href: `${column.page}${pageAddress(example, column)}` }, "own page", hidden(` of ${column.label}`));
  return h(
    "article",
    {},
    h("header", {}, title, h("p", { class: "result" }, statusMark(held), scoreText(held)), h("p", { class: "note" }, tookText(held), " ", link)),
    h("div", { class: "answered" }, columnBody(held, []), foldOf("Details", () => h("div", {}, detailsPart(held)))),
  );
}

// The address of this example on the model's own page.
function pageAddress(example, column) {
  const path = `#/task/${encodeURIComponent(nameInAddress(example.task + column.suffix))}`;
  return `${path}?${new URLSearchParams({ id: nameInAddress(example.id) })}`;
}

function columnBody(held, wanted) {
  return [outcome(held, wanted), held.runs && functionParts(held), answerParts(held, wanted)];
}

// Two texts as one, with the words marked that only one of them has; null if they have little in common.
function wordDiff(before, after, [one, two]) {
  const runs = diff(before, after);
  if (sharedPart(runs) < LEAST_SHARED) return null;
  return [h("p", { class: "note" }, h("del", {}, "only ", visible(one)), " ", h("ins", {}, "only ", visible(two))), diffBlock(runs)];
}

// The answers of the two chosen models, with the second's differences marked.
function diffPart(route, example) {
  const all = textsOf(example);
  if (all.length > 2 && all.every((text) => text !== null && text === all[0])) return h("p", { class: "note" }, `All ${all.length} answers are the same, character for character.`);
  const [from, to] = diffed(route, example);
  const texts = [all[from], all[to]];
  const choose = h("p", { class: "choose" }, columnField(route, "against", "From", [from, to], 0), columnField(route, "model", "To", [from, to], 1));
  if (texts.includes(null)) return [choose, h("p", { class: "note" }, "One of the two has no answer to show.")];
  return [choose, columnDiff(texts, [from, to], "answers", "The two answers are the same, character for character.")];
}

function columnDiff([one, two], places, what, same) {
  if (one === two) return h("p", { class: "note" }, same);
  return wordDiff(one, two, places.map((place) => labels[place])) || h("p", { class: "note" }, `The two ${what} have little in common.`);
}

const textsOf = (example) => columns.map((_, place) => (example.columns[place] ? fullText(wholeColumn(example, place)) : null));

// The two chosen models; by default the best, and the first whose answer differs from the best's.
function diffed(route, example) {
  if (isChosen(route)) return [route.other, route.own];
  const [best, ...others] = textsOf(example);
  const place = others.findIndex((text) => text !== null && text !== best);
  return [0, place < 0 ? 1 : place + 1];
}

function columnField(route, name, label, [from, to], which) {
  const at = [from, to][which];
  const options = labels.map((text, place) => h("option", { value: place, selected: place === at }, visible(text).textContent));
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

function promptDiff(route, example) {
  if (!example.prompts_differ) return null;
  const places = diffed(route, example);
  const prompts = places.map((place) => (example.columns[place] ? promptText(wholeColumn(example, place)) : null));
  if (prompts.includes(null)) return h("p", { class: "note" }, "One of the two has no result.");
  const alone = places.map((place, index) => foldOf(["The prompt of ", visible(labels[place])], () => block(visible(prompts[index]))));
  return [columnDiff(prompts, places, "prompts", "The two were asked with the same prompt."), alone];
}

function baselinePart(example) {
  const { before } = example;
  if (!before) return null;
  const title = h("h3", {}, "Baseline", h("span", { class: "note" }, ` ${before.status}`, typeof before.score === "number" ? `, score ${Number(before.score.toFixed(4))}` : ""));
  const changed = before.changed && h("p", { class: "note warn" }, "The example itself changed since the baseline: the scores are not compared.");
  const scored = before.explained && h("p", { class: "note" }, visible(before.explained));
  const head = [title, changed, scored];
  if (before.same) return [head, h("p", { class: "note" }, "The baseline said the same, character for character.")];
  const old = (before.answers || []).map((answer) => (example.runs ? { ...answer, output: spoken(answer.output) } : answer));
  // For a function, the application's answer.
  const now = before.now === undefined ? example.answers : [{ output: spoken(before.now) }];
  const alone = () => old.map((answer) => outputBlock(answer));
  if (!old.length || !now.length) return [head, alone()];
  const diffs = now.filter((_, place) => old[place]).map((answer, place) => wordDiff(old[place].output, answer.output, ["the baseline", "this run"]));
  if (!diffs.some(Boolean)) return [head, h("p", { class: "note" }, "It has little in common with this run\u2019s output:"), alone()];
  return [head, diffs.map((shown, place) => shown || outputBlock(old[place])), foldOf("The baseline\u2019s output by itself", alone)];
}

function oldPromptPart(example) {
  const before = example.before;
  if (!before || !before.other_prompt) return null;
  const title = h("h3", {}, "The baseline\u2019s prompt", h("span", { class: "note" }, " is another one; the two are compared by id"));
  if (!before.prompt) return [title, h("p", { class: "note" }, "The baseline holds no prompts. One that is written with --lm-pair-by=id does.")];
  const old = before.messages ? spoken(before.messages) : before.prompt;
  const marked = wordDiff(old, before.messages ? promptText(example) : flatPrompt(example), ["the baseline\u2019s", "this run\u2019s"]);
  return [title, marked ? [marked, foldOf("The baseline\u2019s prompt by itself", () => block(visible(old)))] : foldedHead(old, "The prompt before this")];
}

function rerun(example) {
  if (!Object.hasOwn(report.rerun, example.task)) return null;
  const [target, options] = report.rerun[example.task];
  const command = `pytest ${quoted(target + (example.item || example.id))} ${options}`;
  return h("pre", { class: "command" }, h("code", {}, visible(command)));
}

// Quotes for a shell, like Python's shlex.quote.
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}
