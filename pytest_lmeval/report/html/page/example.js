// One example: what was asked, what the model said, what was read from it, what was wanted, what the baseline said.

function examplePane(route, example, found) {
  return [
    exampleHead(route, example, found),
    part("Question", questionBlock(example)),
    outcome(example),
    example.runs && functionParts(example),
    answerParts(example),
    baselinePart(example),
    example.runs ? part("Row", rowPart(example.prompt || "")) : part("Prompt", promptPart(example)),
    oldPromptPart(example),
    part("Details", detailsPart(example)),
    part("Run it again", rerun(example)),
  ];
}

function exampleHead(route, example, found) {
  return [
    exampleSteps(route, example, found),
    h("h2", { id: "example-title", tabindex: "-1" }, visible(example.id)),
    h("p", { class: "result" }, statusMark(example), flipMark(example), scoreText(example), example.must_pass && h("span", { class: "tag" }, "must pass")),
  ];
}

function baselinePart(example) {
  const before = example.before;
  if (!before) return null;
  const title = h("h3", {}, "Baseline", h("span", { class: "note" }, ` ${before.status}`, typeof before.score === "number" ? `, score ${Number(before.score.toFixed(4))}` : ""));
  const changed = before.changed && h("p", { class: "note warn" }, "The example itself changed since the baseline: the scores are not compared.");
  const scored = before.explained && h("p", { class: "note" }, visible(before.explained));
  if (before.same) return [title, changed, scored, h("p", { class: "note" }, "The baseline said the same, character for character.")];
  const old = (before.answers || []).map((answer) => (example.runs ? { ...answer, output: spoken(answer.output) } : answer));
  // Of a function it is what the application answered.
  const own = before.now === undefined ? example.answers : [{ output: spoken(before.now) }];
  if (!old.length || !own.length) return [title, changed, scored, old.map((answer) => outputBlock(answer))];
  const pairs = own.filter((_, place) => old[place]).map((answer, place) => diff(old[place].output, answer.output));
  const alone = () => old.map((answer) => outputBlock(answer));
  if (pairs.every((runs) => sharedPart(runs) < LEAST_SHARED)) {
    return [title, changed, scored, h("p", { class: "note" }, "It has little in common with this run\u2019s output:"), alone()];
  }
  const legend = h("p", { class: "note" }, h("del", {}, "only the baseline"), " ", h("ins", {}, "only this run"));
  return [title, changed, scored, legend, pairs.map(diffBlock), foldOf("The baseline\u2019s output by itself", alone)];
}

function oldPromptPart(example) {
  const before = example.before;
  if (!before || !before.other_prompt) return null;
  const title = h("h3", {}, "The baseline\u2019s prompt", h("span", { class: "note" }, " is another one; the two are compared by id"));
  if (!before.prompt) return [title, h("p", { class: "note" }, "The baseline holds no prompts. One that is written with --lm-pair-by=id does.")];
  const { shared, own } = promptOf(example);
  const runs = diff(before.prompt, `${shared || ""}${own}`);
  if (sharedPart(runs) < LEAST_SHARED) return [title, foldedHead(before.prompt, "The prompt before this")];
  const legend = h("p", { class: "note" }, h("del", {}, "only the baseline\u2019s"), " ", h("ins", {}, "only this run\u2019s"));
  return [title, legend, diffBlock(runs), foldOf("The baseline\u2019s prompt by itself", () => block(visible(before.prompt)))];
}

function rerun(example) {
  if (!Object.hasOwn(report.rerun, example.task)) return null;
  const [target, options] = report.rerun[example.task];
  const command = `pytest ${quoted(target + (example.item || example.id))} ${options}`;
  return h("pre", { class: "command" }, h("code", {}, visible(command)));
}

// For a shell, as Python's shlex.quote does it.
function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}
