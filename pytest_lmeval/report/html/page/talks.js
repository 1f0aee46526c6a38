// Conversations in order: the turns of an example, and the talk of a function, also with a simulated user.

const ROLES = { __proto__: null, system: "System", user: "User", assistant: "Model", tool: "Tool" };
const ANSWERED = /^<answer-[0-9a-f]+>\n([\s\S]*)\n<\/answer-[0-9a-f]+>$/;
const ENDED = { __proto__: null, done: "The user was done.", max_turns: "The user was not done after as many messages as it may say." };

// Every turn of an example with several requests: its texts and calls, and whether it passed.
function conversations(example) {
  const details = example.details || {};
  const talks = details.repeats || [details];
  if (!talks.every((each) => Array.isArray(each.turns)) || !talks[0].turns.length) return null;
  const thoughts = (example.thoughts || []).values();
  return talks.map(({ turns, ended }, place) => [
    h("h3", {}, talks.length > 1 ? `Conversation ${place + 1} of ${talks.length}` : "Conversation"),
    h("ol", { class: "targets" }, turns.map((turn) => h("li", {}, turnPart(turn, thoughts, turns.some(isScored))))),
    ENDED[ended] && h("p", { class: "note" }, ENDED[ended]),
  ]);
}

function turnsMatch(example, pattern) {
  const { repeats, ...details } = example.details || {};
  const turns = (Array.isArray(repeats) ? repeats : [details]).flatMap((each) => (each && Array.isArray(each.turns) ? each.turns : []));
  return turns.some((turn) => pattern.test(plainText(turn.user) || ""));
}

const isScored = (turn) => typeof turn.passed === "boolean";

function wantedOfTurn(turn) {
  const calls = expectedCalls(turn.metric, turn.details);
  return !isScored(turn) ? [] : calls.length ? calls : turn.targets || [];
}

function turnPart(turn, thoughts, someAreScored) {
  const wanted = wantedOfTurn(turn);
  const verdict = isScored(turn) ? `${turn.passed ? "passed" : "failed"}, ${turn.metric} ${Number(turn.score.toFixed(4))}` : "not scored";
  return [
    h("h4", {}, "User", someAreScored && h("span", { class: turn.passed === false ? "note warn" : "note" }, ` ${verdict}`)),
    isContent(turn.parts) ? contentBlock(turn.parts) : block(withEdges(turn.user)),
    (turn.said || []).map((said) => saidPart(said, thoughts)),
    turn.stopped && h("p", { class: "note warn" }, turn.stopped),
    wanted.length > 0 && [h("h4", {}, wantedTitle(turn.metric, wanted)), targets(wanted)],
    turn.details && facts(Object.entries(withoutCalls(turn.metric, turn.details)).map(([name, value]) => [visible(name), detailValue(value)])),
  ];
}

function saidPart(said, thoughts) {
  const thought = said.role === "assistant" ? thoughts.next().value : "";
  return [
    h("h4", {}, ROLES[said.role] || ROLES.assistant),
    thought && fold(`Thoughts before it, not scored, ${count(thought.length)} characters`, thought),
    (said.content || !said.calls) && block(withEdges(said.content), { class: "output" }),
    said.calls && block(visible(said.calls.map((call) => `${call.name}(${plainText(call.arguments)})`).join("\n")), { class: "output" }),
  ];
}

// The conversation in a value; an application's answer in a baseline is JSON.
function talkIn(value) {
  if (isConversation(value)) return value;
  if (typeof value !== "string" || !value.startsWith("[")) return null;
  try {
    const found = JSON.parse(value);
    return isConversation(found) ? found : null;
  } catch {
    return null;
  }
}

const nameOf = (role) => ROLES[role] || String(role).slice(0, 40);

function spoken(value) {
  const talk = talkIn(value);
  return talk ? talk.map(({ role, content, tool_calls: calls }) => `${nameOf(role)}: ${[wordsOf(content), ...callLines(callsOf(calls))].filter(Boolean).join("\n")}`).join("\n") : textOf(value);
}

// The last answer to the user, which tells more about a talk than its beginning.
function atLast(value) {
  const talk = talkIn(value);
  const last = talk && (talk.findLast(({ role, content }) => role === "assistant" && content) || talk[talk.length - 1]);
  return last ? wordsOf(last.content) : textOf(value);
}

function transcript(messages, level) {
  const shown = (message) => h("div", { class: message.role === "assistant" ? "message own" : "message" }, h(level, {}, visible(nameOf(message.role))), messageBlock(message.content, callsOf(message.tool_calls)));
  return messages.map(shown);
}

// The conversations of a run: its output if that is one, or else those with its simulated users.
function talkParts(run, title, level) {
  const talks = usersOf(run);
  if (isConversation(run.output)) return [title("Conversation"), transcript(run.output, level), talks.length === 1 && endNote(talks[0])];
  return talks.map((talk, place) => [
    title(talks.length > 1 ? `Conversation with user ${place + 1} of ${talks.length}` : "Conversation with the simulated user"),
    transcript(talk.messages, level),
    endNote(talk),
  ]);
}

function endNote(talk) {
  return h("p", { class: "note" }, talk.done ? ENDED.done : "The user had not said that it was done.");
}

// Each user's last request contains the whole talk; a first request has only the instructions.
function usersOf(run) {
  const asked = (run.steps || []).filter((step) => step.kind === "user" && isConversation(step.input));
  const last = asked.filter((_, place) => place + 1 === asked.length || asked[place + 1].input.length === 1);
  return last.map((step) => {
    const said = sayOf(step.output);
    const own = said && said.say ? [{ role: "user", content: said.say }] : [];
    return { messages: [...step.input.slice(1).flatMap(heard), ...own], done: Boolean(said && said.done) };
  }).filter((talk) => talk.messages.length);
}

// For the model that plays the user, its own messages are those of an assistant.
function heard({ role, content }) {
  const said = role === "assistant" ? sayOf(content) : null;
  const answer = role === "user" ? wordsOf(content).match(ANSWERED) : null;
  return said ? [{ role: "user", content: said.say }] : answer ? [{ role: "assistant", content: answer[1] }] : [];
}

function sayOf(text) {
  const said = typeof text === "string" && text.startsWith("{") ? parsedRow(text) : null;
  return said && typeof said.say === "string" ? said : null;
}
