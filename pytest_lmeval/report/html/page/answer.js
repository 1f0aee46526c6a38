// The question, the answer and the scores of an example, for the only model of a page or one of several.

const CALLS = "tool_calls";
const SHORTEST_QUESTION = 15;

function part(title, content) {
  return content ? [h("h3", {}, title), content] : null;
}

// The result itself, or that of the first model that has one.
const firstResult = (example) => (example.columns || [example]).find(Boolean);

// The question as text: the user's last message, or the end of a prompt without roles.
function questionText(example) {
  const asked = askedOf(example);
  if (asked) return asked;
  const message = (messagesOf(example) || []).findLast((one) => one.role === "user");
  if (message) return wordsOf(message.content);
  const parts = (example.prompt || "").trim().split(/\n\s*\n/);
  const last = parts[parts.length - 1];
  return last.length < SHORTEST_QUESTION ? parts.slice(-2).join("\n") : last;
}

// The usual names of a column with questions, as in other reports.
const QUESTIONS = ["question", "prompt", "input", "query", "text", "instruction", "message", "problem", "q"];

// The question of a function, as in other reports: a value of its row, or else the text of its first request.
function askedOf(example) {
  const first = firstResult(example);
  if (!first.runs) return null;
  const row = Object.entries(parsedRow(first.prompt || example.prompt || "") || {});
  const named = Object.fromEntries(row.map(([name, value]) => [name.toLowerCase(), value]));
  const isText = (value) => ["string", "number"].includes(typeof value) && String(value).trim();
  const column = QUESTIONS.find((name) => isText(named[name]));
  return column ? String(named[column]) : askedContents(first).map(textIn).findLast((text) => text.trim()) || null;
}

// The user's messages in the first request of a function.
function askedContents(result) {
  const { input } = (result.runs[0].steps || []).find((step) => KINDS[step.kind] === "model" && step.input !== undefined) || {};
  return Array.isArray(input) ? input.filter((one) => one && one.role === "user").map((one) => one.content) : [input];
}

const textIn = (content) => wordsOf([content].flat().filter((part) => isContent([part])));

// The last user message with its media, or else the question as text.
function questionBlock(example) {
  const first = firstResult(example);
  const content = first.runs && askedContents(first).pop();
  if (isContent(content) && [content].flat().some(kindOf)) return contentBlock(content);
  const asked = askedOf(example);
  return asked && foldedHead(asked, "The question before this");
}

// The answer as read from the output; null if no answer is recorded.
function saidText(example) {
  const said = saidBy(example);
  return said === null ? null : example.runs && typeof said !== "string" ? spoken(said) : textOf(said);
}

// The answer in a few words; for a conversation, its end.
function shortSaid(example) {
  const said = saidBy(example);
  return said === null ? null : typeof said === "string" ? said : atLast(said);
}

function saidBy(example) {
  if (example.runs) return example.runs.map(runSaid).find((said) => said !== null) ?? null;
  return example.answers.length ? predictionOf(example.answers[0]) : null;
}

function runSaid(run) {
  if (run.output !== undefined) return run.output;
  const step = lastAnswer(run);
  return step ? step.output : null;
}

// The baseline's answer, if the example was compared.
function beforeText(example, text = spoken) {
  const before = example.before || {};
  if (before.same) return text === spoken ? saidText(example) : shortSaid(example);
  if (!before.answers || !before.answers.length) return before.explained || null;
  const said = predictionOf(before.answers[0]);
  return example.runs ? text(said) : said;
}

// The wanted answer; for a conversation, that of the first turn that failed.
function firstWanted(example) {
  const first = firstResult(example);
  const failed = ((first.details || {}).turns || []).find((turn) => turn.passed === false);
  return example.targets.length ? example.targets[0] : failed ? wantedOfTurn(failed)[0] : undefined;
}

function scoreText(example) {
  if (example.score === undefined || example.score === null) return h("span", {}, example.status === "measured" ? "no score of its own" : "not scored");
  const shown = (value) => String(Number(value.toFixed(4)));
  return h("span", {}, "score ", h("b", {}, shown(example.score)), `, threshold ${shown(example.threshold)}`);
}

// The known reasons for the score.
function reasonParts(example) {
  const reason = example.runs && example.runs.length === 1 ? example.runs[0].reason : (example.details || {}).reason;
  return [
    example.error && part(example.status === "excluded" ? "Why it was excluded" : "Why it could not be scored", block(visible(example.error), { class: "error" })),
    typeof reason === "string" && part("Why the score is what it is", block(visible(reason))),
  ];
}

function notesOn(example) {
  return [
    example.unparsed && h("p", { class: "note warn" }, "Unparsed: the rule found nothing to extract."),
    example.cut_off && h("p", { class: "note warn" }, "Cut off: an output ended at the limit of tokens, or the thoughts before it did not end."),
  ];
}

// A conversation turn by turn, or else each output that is not shown beside the targets.
function answerParts(example, wanted) {
  return conversations(example) || (isOnce(example, wanted) ? null : example.answers.map((answer, place) => answerPart(example, answer, place)));
}

// True if the only output equals the scored text except for blanks; the page then shows it once.
function isOnce({ answers, details }, wanted) {
  return wanted.length > 0 && answers.length === 1 && !(details || {}).turns && predictionOf(answers[0]).trim() === answers[0].output.trim();
}

function outcome(example, wanted) {
  const first = example.answers[0];
  const rule = example.rule ? h("span", { class: "note" }, " by ", h("code", {}, visible(example.rule))) : null;
  // Without a rule and a target, the prediction would repeat the output.
  const isRead = first && first.prediction !== undefined && !(example.details || {}).turns;
  return [
    reasonParts(example),
    (isRead || wanted.length > 0) && h(
      "div",
      { class: "outcome" },
      first && h("div", {}, isOnce(example, wanted) ? answerPart(example, first, 0, rule) : [h("h3", {}, "Prediction", rule), block(withEdges(predictionOf(first)), { class: "said" })]),
      wanted.length > 0 && h("div", {}, h("h3", {}, wantedTitle(example.metric, wanted)), targets(wanted)),
    ),
    notesOn(example),
    part("Scores", scorersPart(example)),
  ];
}

// The expected calls of a metric of calls replace the targets.
function expectedCalls(metric, details) {
  const found = metric === CALLS ? (details || {}).expected : null;
  return Array.isArray(found) ? (found.length ? found : ["no call"]) : [];
}

function withoutCalls(metric, details) {
  const { expected, ...others } = details;
  return expectedCalls(metric, details).length ? others : details;
}

function wantedTitle(metric, wanted) {
  const name = metric === CALLS ? "Expected call" : "Target";
  return wanted.length > 1 ? `${name}s` : name;
}

function targets(wanted) {
  const shown = (target) => block(withEdges(target), { class: "said" });
  if (wanted.length === 1) return shown(wanted[0]);
  return h("ol", { class: "targets" }, wanted.map((target) => h("li", {}, shown(target))));
}

function answerPart(example, answer, place, rule) {
  const several = example.answers.length > 1;
  const scores = (example.details || {}).scores;
  const worth = several && Array.isArray(scores) && typeof scores[place] === "number" ? `, score ${scores[place]}` : "";
  const title = several ? `Output ${place + 1} of ${example.answers.length}${worth}` : "Output";
  const marked = answer.span ? h("span", { class: "note" }, " what was extracted is ", h("mark", {}, "marked")) : null;
  const thoughts = answer.thoughts && fold(`Thoughts before it, not scored, ${count(answer.thoughts.length)} characters`, answer.thoughts);
  return [h("h3", {}, title, marked, rule), thoughts, outputBlock(answer)];
}

function outputBlock({ output, span }) {
  if (!span) return block(withEdges(output), { class: "output" });
  const [start, end] = span;
  const inside = h("mark", {}, hidden("[extracted: "), visible(output.slice(start, end)), hidden("]"));
  return block([visible(output.slice(0, start)), inside, visible(output.slice(end))], { class: "output" });
}

const PROMPT_MESSAGES = 6;

function sharedMessages(example) {
  return loaded(taskNames.indexOf(example.task)).messages || [];
}

// The messages of a prompt that is a conversation; null for a prompt without roles.
function messagesOf(example) {
  const messages = [...sharedMessages(example), ...(example.messages || [])];
  return messages.length > 0 ? messages : null;
}

function flatPrompt(example) {
  const { shared, own } = promptOf(example);
  return `${shared || ""}${own}`;
}

function promptText(example) {
  const messages = messagesOf(example);
  return messages ? spoken(messages) : flatPrompt(example);
}

function messagesPart(shared, own) {
  const folded = (label, messages) => messages.length > 0 && foldOf(`${label}, ${plural(messages.length, "message")}`, () => h("div", {}, transcript(messages, "h4")));
  return [
    folded("What every prompt of this task begins with", shared),
    folded("The conversation before this", own.slice(0, -PROMPT_MESSAGES)),
    transcript(own.slice(-PROMPT_MESSAGES), "h4"),
  ];
}

function promptPart(example) {
  if (messagesOf(example)) return messagesPart(sharedMessages(example), example.messages || []);
  const { shared, own } = promptOf(example);
  if (!shared && !own) return null;
  const beginning = shared && fold(`What every prompt of this task begins with, ${count(shared.length)} characters`, shared);
  return [beginning, foldedHead(own, "The prompt before this")];
}

function detailsPart(example) {
  const { scores, repeats, reason, turns, ...others } = withoutCalls(example.metric, example.details || {});
  const details = withoutRecorded(others);
  const usage = Object.entries(example.usage || {}).map(([name, value]) => [name.replace("_", " "), valueOf(value)]);
  return [
    facts([
      ["Task", visible(example.task)],
      ["Line", example.line || null],
      ["Quarantined until", example.quarantine ? visible(`${example.quarantine.until}: ${example.quarantine.reason}`) : null],
      ["Category", example.category ? visible(example.category) : null],
      ["Tags", example.tags ? visible(example.tags.join(", ")) : null],
      ["Cluster", example.cluster ? visible(example.cluster) : null],
      ["Metric", visible(example.metric)],
      ["Function", example.function ? h("code", {}, visible(example.function)) : null],
      ["Took", example.took === undefined ? null : duration(example.took)],
      ["Latency", example.ms === undefined ? null : duration(example.ms)],
      ...usage,
      ["Reason", typeof reason === "string" ? null : reason && detailValue(reason)],
      ...Object.entries(details).map(([name, value]) => [visible(name), detailValue(value)]),
    ]),
    recordedFold(others),
    repeats && !Array.isArray(repeats[0].turns) && foldOf("What the metric told of each output", () => block(visible(JSON.stringify(repeats, null, 2)))),
  ];
}

function detailValue(value) {
  if (typeof value === "string" && (value.length > 60 || value.includes("\n"))) return block(visible(value));
  if (value !== null && typeof value === "object") return block(visible(JSON.stringify(value, null, 2)));
  return valueOf(value);
}
