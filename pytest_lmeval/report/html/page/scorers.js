// The results of scorers and checks with their reasons, and the records of judges and simulated users.

const RECORDED = ["scorers", "checks", "judge", "user"];

function scorersPart(example) {
  const { scorers, checks, score_field: field } = example.details || {};
  const decides = (name) => typeof field === "string" && field.startsWith(`${name}.`) && [" ", h("span", { class: "tag" }, "decides")];
  if (isMapping(scorers)) return facts(Object.entries(scorers).map(([name, one]) => [visible(name), [worthOf(one), decides(name), reasonOf(one)]]));
  return isListOfMappings(checks) && checks.length > 0 && facts(checks.map((one) => [visible(String(one.name)), [worthOf(one), " ", h("span", { class: one.passed === false ? "note warn" : "note" }, one.passed === false ? "failed" : "passed"), wantedOfCheck(one), reasonOf(one)]]));
}

const isMapping = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isListOfMappings = (value) => Array.isArray(value) && value.every(isMapping);

function worthOf(one) {
  return isMapping(one) && typeof one.score === "number" ? valueOf(one.score) : snippet(plainText(one), 120);
}

function reasonOf(one) {
  return isMapping(one) && typeof one.reason === "string" && [" ", h("span", { class: "note" }, visible(one.reason))];
}

function wantedOfCheck(one) {
  const wanted = Array.isArray(one.targets) && one.passed === false ? one.targets.map(plainText).join(" | ") : "";
  return wanted && [" wanted ", h("q", { class: "said" }, snippet(wanted, 120))];
}

// Under these names, a custom metric may record any value.
function recordedFold(details) {
  const held = RECORDED.filter((name) => isMapping(details[name]) || isListOfMappings(details[name]));
  const shown = Object.fromEntries(held.map((name) => [name, details[name]]));
  return held.length > 0 && foldOf(`As recorded: ${held.join(", ")}`, () => block(visible(JSON.stringify(shown, null, 2))));
}

function withoutRecorded(details) {
  const { score_field: field, ended, ...others } = details;
  const isFold = (name) => RECORDED.includes(name) && (isMapping(others[name]) || isListOfMappings(others[name]));
  const rest = Object.entries(others).filter(([name]) => !isFold(name));
  return Object.fromEntries([...rest, ...(isMapping(details.scorers) ? [] : [["score_field", field]]), ...(ENDED[ended] ? [] : [["ended", ended]])].filter(([, value]) => value !== undefined));
}
