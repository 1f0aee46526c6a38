// The rest of the first view: time and usage, skipped examples, and the settings of the run.

function latencySection() {
  const { latency } = report;
  if (!latency) return null;
  const lines = latency.bins.filter(([, , n]) => n).map(([low, high, n]) =>
    h("tr", {}, h("th", { scope: "row", class: "number" }, duration(low)), number(duration(high)), number(count(n))),
  );
  const head = [numberHead("From"), numberHead("To"), numberHead("Examples")];
  const scale = latency.log ? " on a logarithmic scale" : "";
  return [
    h("figure", {}, histogram(latency), h("figcaption", {}, `Examples by time per request${scale}.`)),
    facts(["median", "p95", "p99", "max"].map((name) => [QUANTILES[name], latency[name] === null ? null : duration(latency[name])])),
    foldOf("The bars as a table", () => table("Examples by latency", head, lines, { class: "narrow" })),
  ];
}

const QUANTILES = { median: "Median", p95: "p95", p99: "p99", max: "Slowest" };

function usageSection() {
  const usage = board.usage || {};
  if (!Object.keys(usage).length) return null;
  const names = { prompt_tokens: "Prompt tokens", completion_tokens: "Completion tokens", reasoning_tokens: "Reasoning tokens", cost: "Cost", cost_unknown: "Requests of unknown cost" };
  const shown = ([name, value]) => [names[name] || name, name === "cost" ? value.toFixed(4) : count(value)];
  const cost = usage.cost && board.counts.scored ? [["Cost per 1,000 examples", ((1000 * usage.cost) / board.counts.scored).toFixed(4)]] : [];
  return facts([...Object.entries(usage).map(shown), ...cost]);
}

function leftOutSection() {
  const comparison = report.comparison || {};
  const lists = [
    ["Bad records", (board.bad_records || []).map(String)],
    ["New examples, without a counterpart in the baseline", namesOf(comparison.new)],
    ["Changed examples, not compared", namesOf(comparison.changed)],
    ["Removed examples, in the baseline only", namesOf(comparison.removed)],
    ["Examples that were scored in the baseline only", namesOf(comparison.unscored)],
    ["Changed examples that pass by their new targets only", namesOf(onlyBy(comparison, "passes", "passes_by_old_targets"))],
    ["Changed examples that would pass by their old targets only", namesOf(onlyBy(comparison, "passes_by_old_targets", "passes"))],
    ["Left out of the comparison", namesOf(comparison.left_out)],
  ].filter(([, entries]) => entries.length);
  const items = (entries) => h("ul", { class: "plain" }, entries.slice(0, 500).map((entry) => h("li", {}, visible(entry))));
  return lists.map(([name, entries]) => foldOf(`${name}: ${count(entries.length)}`, () => items(entries)));
}

function onlyBy(comparison, which, other) {
  return (comparison.retargeted || []).filter((entry) => entry[which] && !entry[other]);
}

function namesOf(entries) {
  if (!entries) return [];
  const list = Array.isArray(entries) ? entries : Object.entries(entries);
  return list.map((entry) => {
    if (entry && entry.task && entry.id) return `${entry.task}: ${entry.id}`;
    if (Array.isArray(entry)) return entry.map(plainText).join(": ");
    return plainText(entry);
  });
}

function runSection() {
  if (several) return null;
  const { versions, git, argv, rootdir, report_dir, model, platform, ...rest } = board.manifest || {};
  const commit = git && [h("code", {}, String(git.commit).slice(0, 12)), git.dirty ? ", with changes not committed" : ""];
  const { tasks: selected, ...selection } = board.selection || {};
  return facts([
    ["Adapter", visible(board.adapter)],
    ["Options", mappingText(board.adapter_options)],
    ["Model", mappingText(model)],
    ["Started", h("time", { datetime: board.timestamp }, board.timestamp)],
    ["Command", report.command && h("code", {}, visible(report.command))],
    ["Selection", mappingText(selection)],
    ["Selected", selected && `${count(selectedOf(selected, "selected"))} of ${plural(selectedOf(selected, "available"), "example")}`],
    ["Commit", commit],
    ["Versions", mappingText(versions)],
    ["Platform", platform && visible(String(platform))],
    ...named(rest),
    ["CORE score", board.core_score === undefined ? null : score(board.core_score)],
    ["Digest", h("code", {}, board.digest)],
  ]);
}

function selectedOf(selected, key) {
  return Object.values(selected).reduce((sum, counts) => sum + (counts[key] || 0), 0);
}

function mappingText(mapping) {
  const entries = Object.entries(mapping || {});
  return entries.length ? visible(entries.map(([name, value]) => `${name} ${plainText(value)}`).join(", ")) : null;
}
