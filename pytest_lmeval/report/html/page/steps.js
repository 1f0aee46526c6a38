// An example that a function scored: each repeat as steps over time, and its row.

const MESSAGES_SHOWN = 2;

function functionParts(example) {
  const { runs } = example;
  const scores = (example.details || {}).scores;
  return [
    part("Scores", scoresPart(example)),
    runs.map((run, place) => {
      const worth = Array.isArray(scores) && typeof scores[place] === "number" ? `, score ${scores[place]}` : "";
      return [runs.length > 1 && h("h3", {}, `Repeat ${place + 1} of ${count(runs.length)}${worth}`), runParts(run, runs.length > 1)];
    }),
  ];
}

function runParts(run, isOne) {
  const title = (text) => (isOne ? h("h4", {}, text) : h("h3", {}, text));
  const steps = run.steps || [];
  const judged = verdictsOf(run);
  const answer = run.output === undefined && lastAnswer(run);
  const isTalk = isConversation(run.output);
  return [
    talkParts(run, title, isOne ? "h5" : "h4"),
    run.output && !isTalk && [title("Output"), typeof run.output === "string" ? foldedHead(run.output, "The output before this", 6000) : detailValue(run.output)],
    answer && [title(answered(run) > 1 ? "What the model answered last" : "What the model answered"), answerBlock(answer)],
    isOne && run.reason && [title("Why the score is what it is"), block(visible(run.reason))],
    judged.length > 0 && [title("What judges said, and why"), h("ul", {}, judged.map((said) => h("li", {}, visible(said))))],
    steps.length > 0 && [title(`Steps, ${count(steps.length + (run.left_out || 0))}`), timeline(run)],
    run.notes && [title("Notes"), facts(Object.entries(run.notes).map(([name, value]) => [visible(name), detailValue(value)]))],
  ];
}

const answersOf = (run) => (run.steps || []).filter((step) => KINDS[step.kind] === "model" && step.output !== undefined && !step.error);
const answered = (run) => answersOf(run).length;
const lastAnswer = (run) => answersOf(run).pop();

function verdictsOf(run) {
  return (run.steps || []).map((step) => step.verdict).filter(Boolean);
}

function whyOf(run) {
  return Object.hasOwn(run.why || {}, run.decided_by) ? run.why[run.decided_by] : "";
}

function runGist(runs) {
  const [said] = runs.map((run) => run.reason || whyOf(run) || verdictsOf(run)[0]).filter(Boolean);
  return said;
}

function scoresPart(example) {
  const decides = (example.runs.find((run) => run.decided_by) || {}).decided_by;
  const entries = Object.entries(example.metrics || {});
  const tag = (name) => name === decides && [" ", h("span", { class: "tag" }, "decides")];
  const whys = (name) => [...new Set(example.runs.map((run) => (Object.hasOwn(run.why || {}, name) ? run.why[name] : "")))].filter(Boolean);
  const because = (name) => whys(name).map((why) => [" ", h("span", { class: "note" }, visible(why))]);
  return entries.length > 0 && facts(entries.map(([name, value]) => [visible(name), [valueOf(value), tag(name), because(name)]]));
}

function timeline(run) {
  const { steps } = run;
  const end = steps.reduce((latest, step) => Math.max(latest, (step.start_ms || 0) + (step.ms || 0)), 0);
  const used = steps.some((step) => step.usage) ? "" : " unused";
  const rows = steps.map((step) => h("li", {}, timelineRow(step, end)));
  const half = Math.ceil(rows.length / 2);
  const gap = run.left_out && h("li", { class: "gap" }, `${plural(run.left_out, "step")} left out here; they are in the ledger.`);
  const axis = h("div", { class: "axis", "aria-hidden": "true" }, h("span", { class: "track" }, ["0", duration(end / 2), duration(end)].map((text) => h("span", {}, text))));
  return h("div", { class: `timeline${used}` }, end > 0 && axis, h("ol", {}, gap ? [rows.slice(0, half), gap, rows.slice(half)] : rows));
}

const USED = { prompt_tokens: "prompt tokens", completion_tokens: "completion tokens", cost: "cost" };

function timelineRow(step, end) {
  const took = step.error ? h("span", { class: "took bad" }, "error") : h("span", { class: "took" }, step.ms === undefined ? "" : duration(step.ms));
  const said = [
    h("span", { class: "what" }, h("span", { class: "kind" }, snippet(step.kind, 20)), " ", h("span", { class: "name" }, snippet(step.name || "", 80))),
    hidden(`, after ${duration(step.start_ms || 0)}, `),
    stepBar(step, end),
    took,
    h("span", { class: "used" }, usedTexts(step).map((text) => h("span", {}, text))),
  ];
  return foldOf(said, () => stepPane(step), { class: "step" });
}

function stepBar(step, end) {
  const bar = h("span", { class: `bar ${KINDS[step.kind] || ""}${step.error ? " bad" : ""}${step.ms === undefined ? " moment" : ""}` });
  const share = (ms) => (end > 0 ? `${((100 * ms) / end).toFixed(2)}%` : "0%");
  bar.style.setProperty("--from", share(step.start_ms || 0));
  bar.style.setProperty("--length", share(step.ms || 0));
  return h("span", { class: "track", "aria-hidden": "true" }, bar);
}

const KINDS = { __proto__: null, request: "model", model: "model", judge: "judge", user: "judge", tool: "tool" };

function usedTexts(step) {
  const { prompt_tokens: prompt, completion_tokens: completion, cost } = step.usage || {};
  const tokens = (prompt || 0) + (completion || 0);
  return [tokens > 0 && `${count(tokens)} tokens`, cost !== undefined && `cost ${costText(cost)}`].filter(Boolean);
}

function costText(cost) {
  return String(Number(cost.toPrecision(3)));
}

function stepPane(step) {
  const usage = Object.entries(step.usage || {}).map(([name, value]) => [visible(Object.hasOwn(USED, name) ? USED[name] : name), valueOf(value)]);
  return h(
    "div",
    { class: "inside" },
    facts([["Began after", duration(step.start_ms || 0)], ["Took", step.ms === undefined ? null : duration(step.ms)], ...usage]),
    step.error && block(visible(step.error), { class: "error" }),
    step.input !== undefined && [h("h4", {}, "Input"), saidBlock(step.input)],
    step.thoughts && fold(`Thoughts before the output, not scored, ${count(step.thoughts.length)} characters`, String(step.thoughts)),
    step.output !== undefined && [h("h4", {}, "Output"), userSaid(step) || answerBlock(step)],
  );
}

function userSaid(step) {
  const said = step.kind === "user" ? sayOf(step.output) : null;
  return said && [block(withEdges(said.say)), said.done === true && h("p", { class: "note" }, ENDED.done)];
}

function saidBlock(value) {
  if (typeof value === "string") return foldedHead(value, "The text before this", 6000);
  if (!isConversation(value)) return block(visible(JSON.stringify(value, null, 2)));
  const earlier = value.slice(0, -MESSAGES_SHOWN);
  const shown = (message) => h("div", { class: "message" }, h("h5", {}, snippet(String(message.role), 40)), messageBlock(message.content, callsOf(message.tool_calls)));
  return [earlier.length > 0 && foldOf(`${plural(earlier.length, "message")} before`, () => h("div", {}, earlier.map(shown))), value.slice(-MESSAGES_SHOWN).map(shown)];
}

// An answer with calls of tools is recorded as the JSON of its text and its calls.
function answerBlock(step) {
  const answer = step.kind === "request" && typeof step.output === "string" && step.output.startsWith("{") ? parsedRow(step.output) : null;
  const calls = answer && typeof answer.text === "string" ? callsOf(answer.tool_calls) : null;
  return calls ? messageBlock(answer.text, calls) : saidBlock(step.output);
}

function messageBlock(text, calls) {
  const lines = callLines(calls);
  return [(text || !lines.length) && contentBlock(text), lines.length > 0 && block(visible(lines.join("\n")), { class: "calls" })];
}

function callLines(calls) {
  return (calls || []).map(([name, given]) => `${name}(${plainText(given)})`);
}

// Names and arguments; null if the value is not a list of calls.
function callsOf(given) {
  if (!Array.isArray(given)) return null;
  const calls = given.map((call) => (call && (call.function || call)) || {});
  return calls.every((call) => typeof call.name === "string" && call.arguments !== undefined) ? calls.map((call) => [call.name, call.arguments]) : null;
}

const OF_A_MESSAGE = ["role", "content", "tool_calls", "tool_call_id"];

function isConversation(value) {
  const isMessage = (one) =>
    one !== null &&
    typeof one === "object" &&
    isContent(one.content) &&
    (one.tool_calls === undefined || callsOf(one.tool_calls) !== null) &&
    Object.keys(one).every((key) => OF_A_MESSAGE.includes(key));
  return Array.isArray(value) && value.length > 0 && value.every(isMessage);
}

function textOf(value) {
  return typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
}

function stepsMatch(example, pattern) {
  const inStep = (step) => pattern.test(step.name || "") || pattern.test(textOf(step.input)) || pattern.test(textOf(step.output)) || pattern.test(textOf(step.thoughts)) || pattern.test(step.verdict || "") || pattern.test(step.error || "");
  return (example.runs || []).some((run) => pattern.test(run.reason || "") || pattern.test(run.output === undefined ? "" : spoken(run.output)) || (run.steps || []).some(inStep));
}

// A row is JSON; its texts are shown as text.
function rowPart(text) {
  if (text === "{}") return null;
  const row = parsedRow(text);
  if (row === null) return foldedHead(text, "The row before this");
  const shown = (value) => (typeof value === "string" ? block(withEdges(value)) : detailValue(value));
  return [facts(Object.entries(row).map(([name, value]) => [visible(name), shown(value)])), fold("The row as JSON", text)];
}

function parsedRow(text) {
  let isExact = true;
  const check = (_, value) => {
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) isExact = false;
    return value;
  };
  try {
    const row = JSON.parse(text, check);
    return isExact && row !== null && typeof row === "object" && !Array.isArray(row) ? row : null;
  } catch {
    return null;
  }
}
