// The first view of several models: the best, the differences, the scores by task, and the cost of each.

const LONG_SENTENCE = 160;

function decision() {
  const examples = sumOf("total");
  const differing = sumOf("differ");
  const said = `${plural(columns.length, "model")}, ${plural(examples, "example")} in ${plural(taskNames.length, "task")}. `;
  const link = differing > 0 && h("a", { href: address({ show: "differs" }) }, `The models differ in ${count(differing)}`);
  return h(
    "div",
    { class: "verdict" },
    h("h1", { tabindex: "-1", class: report.sentence.length > LONG_SENTENCE ? "long" : null }, visible(report.sentence)),
    h("p", { class: "lead" }, said, link || "No example tells the models apart.", link && "."),
    h("p", { class: "note" }, "Gate: ", visible(report.verdict)),
  );
}

function modelsSection() {
  if (!several) return null;
  const plotted = report.models.some(({ format }) => format === "plot");
  const scale = plotted && differenceScale(columns);
  const flips = (kind) => (column, place) => flipCount(column, place, kind);
  const own = { label: modelName, worse: flips("worse"), better: flips("better"), axis: plotted && differenceAxis(scale), plot: (column) => differencePlot(column, scale) };
  const shown = declaredTable("Models, the best first", report.models, columns, own, { class: "models" }, (column) => (column.is_best || column.not_worse ? "best" : null));
  const told = [
    plotted && h("span", {}, "Plot: the difference to the best with its interval; the line is at 0. "),
    h("span", {}, `Worse: examples that ${shortLabels[0]} passed and the model did not. Better: the reverse. The row of ${shortLabels[0]} is compared with ${shortLabels[1]}.`),
  ];
  const sizes = report.table.map(({ task, scores }) => [task, Math.max(...Object.values(scores).map(({ n }) => n || 0))]);
  return [h("p", { class: "note" }, told), scroller("Models", shown), smallTasks(sizes), csvButton("models", () => csvOfTable(shown))];
}

function modelName(column) {
  const name = column.page ? h("a", { href: column.page }, labelOf(column)) : labelOf(column);
  const place = column.is_best ? h("span", { class: "tag good" }, "best") : column.not_worse ? h("span", { class: "tag" }, "not shown to be worse") : column.ranked ? null : h("span", { class: "tag warn" }, "not ranked");
  return [name, " ", place, " ", verdictTag(column)];
}

function verdictTag({ verdict }) {
  if (verdict === "not gated") return null;
  const [tone, glyph, word] = VERDICTS[verdict] || ["", "\u2022", verdict];
  return h("span", { class: `tag ${tone}` }, h("span", { "aria-hidden": "true" }, `${glyph} `), lowered(word));
}

function flipCount(column, place, kind) {
  const n = report.examples.reduce((sum, tally) => sum + tally.columns[place][kind], 0);
  return n ? h("a", { href: address({ show: kind, model: column.label }) }, count(n), hidden(` ${kind}: show these examples`)) : "0";
}

// The table task x model: a cell leads to the examples of the task that the model did not pass.
function tasksSection() {
  if (!several || !report.table.length) return null;
  const head = ["Task", ...columns.map((column) => numberHead(labelOf(column)))];
  const shown = table("Scores by task and model", head, report.table.map(taskRow), { class: "by-task" });
  const note = h("p", { class: "note" }, "Score, and the number of examples that it is over; the best of a task in bold. A score leads to the examples that the model did not pass.");
  return [note, scroller("Scores by task and model", shown), csvButton("tasks", () => csvOfTable(shown))];
}

function taskRow({ task, scores, best }) {
  const name = taskNames.includes(task) ? h("a", { href: address({ task }) }, visible(task)) : visible(task);
  return h("tr", {}, h("th", { scope: "row" }, name), labels.map((label, place) => taskCell(task, scores[label], place, best.includes(label))));
}

function taskCell(task, one, place, isBest) {
  if (!one || one.score === null) return number(h("span", { class: "nothing" }, "no score"));
  const tally = report.examples.find((each) => each.task === task);
  const shown = tally && tally.columns[place].failed ? "failed" : "all";
  const text = h("a", { href: address({ task, show: shown, model: labels[place] }) }, score(one.score));
  return h("td", { class: isBest ? "number best" : "number" }, text, h("span", { class: "note" }, ` n ${count(one.n)}`));
}

function promptsSection() {
  if (!several) return null;
  const differ = sumOf("prompts_differ");
  const both = sumOf("prompts_known");
  if (!both) return h("p", {}, "The runs hold no prompts to compare.");
  if (!differ) return h("p", { id: "prompts" }, `All models were asked with the same prompts (${plural(both, "example")}).`);
  return h("p", { id: "prompts" }, h("a", { href: address({ show: "prompts" }) }, `${count(differ)} of ${plural(both, "example")}`), " were asked with different prompts.");
}

function reasonsSection() {
  const told = columns.flatMap((column) => (column.reasons || []).map((reason) => h("li", {}, visible(`${column.label}: ${column.verdict}: ${reason}`))));
  return told.length > 0 && h("ul", { id: "reasons" }, told);
}

function remarksSection() {
  return several && h("ul", { id: "remarks" }, report.remarks.map((remark) => h("li", {}, visible(remark))));
}
