// The tables that report/tables.py declares, and verdicts in words.

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

const DASH = "\u2013";
const between = (ends, shown) => (ends ? `${shown(ends[0])} to ${shown(ends[1])}` : DASH);
const pText = (p) => (typeof p !== "number" ? DASH : p < 0.001 ? "<\u00a0.001" : p.toFixed(3));
const asItIs = (value) => visible(String(value ?? ""));

// Functions that show a value, by the format of its column.
const FORMATS = {
  text: asItIs,
  raw: asItIs,
  count: (n) => (typeof n === "number" ? count(n) : DASH),
  some: (n) => (n ? count(n) : ""),
  score: (value) => score(value),
  interval: (ends) => between(ends, score),
  change: (value) => change(value),
  "change interval": (ends) => between(ends, change),
  p: pText,
  "short p": pText,
  share: (value) => (typeof value === "number" ? `${(100 * value).toFixed(1)}\u00a0%` : DASH),
  ms: duration,
  duration,
  cost: (spent) => (spent ? `${spent[1] ? "\u2265 " : ""}${costText(spent[0])}` : DASH),
};

// ``own`` has functions whose result replaces a value, by the name of its column; plots have an axis in their heading.
function declaredTable(caption, columns, rows, own, attributes, kindOf) {
  const kind = ({ format }) => format === "plot" ? "plotted" : format === "text" ? null : format === "raw" ? "raw" : "number";
  const head = columns.map((column) => {
    const title = column.format === "plot" ? [hidden(column.title), own.axis] : column.title;
    return h("th", { scope: "col", class: kind(column), title: column.hint || null }, title);
  });
  const content = (row, place, { name, format }) => {
    const drawn = own[format === "plot" ? "plot" : name];
    return drawn ? drawn(row, place) : FORMATS[format](row[name]);
  };
  const lines = rows.map((row, place) => h("tr", { class: kindOf ? kindOf(row) : null }, columns.map((column, first) =>
    first ? h("td", { class: kind(column) }, content(row, place, column)) : h("th", { scope: "row" }, content(row, place, column)))));
  return table(caption, head, lines, attributes);
}
