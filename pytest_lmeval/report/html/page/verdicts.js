// Verdicts in words, and what is said of them on the first view of every page.

const VERDICTS = {
  pass: ["good", "\u2713", "Passed"],
  new: ["good", "\u2713", "Passed: a first baseline"],
  inconclusive: ["warn", "?", "Inconclusive"],
  regression: ["bad", "\u2715", "Regression"],
  examples: ["bad", "\u2715", "Examples failed"],
  floor: ["bad", "\u2715", "Under a floor"],
  must_pass: ["bad", "\u2715", "A must-pass example failed"],
  stale: ["bad", "!", "Stale baseline"],
  incomplete: ["bad", "!", "Incomplete"],
};
const NOT_GATED = ["", "\u2022", "Not gated"];

function section(title, content) {
  const empty = !content || (Array.isArray(content) && !content.some(Boolean));
  return empty ? null : h("section", {}, h("h2", {}, title), h("div", { class: "content" }, content));
}

const INTERVAL = "Confidence interval of the change. It excludes 0 exactly where the test finds a regression or an improvement.";

function intervalOf(entry) {
  return entry.interval ? `${change(entry.interval[0])} to ${change(entry.interval[1])}` : "\u2013";
}

// Of what was not compared there is none.
function changeOf(entry) {
  return change(entry.verdict === "uncompared" ? null : entry.change);
}

function pValue(entry) {
  if (entry.verdict === "uncompared") return "\u2013";
  const p = typeof entry.p_adjusted === "number" ? entry.p_adjusted : entry.p;
  if (typeof p !== "number") return "\u2013";
  return p < 0.001 ? "<\u00a0.001" : p.toFixed(3);
}
