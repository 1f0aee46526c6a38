// Elements are made here only, and text gets into them as text nodes only, with what cannot be seen spelled out: nothing
// a model wrote is ever parsed.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : visible(String(child)));
  }
  return node;
}

function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function hidden(text) {
  return h("span", { class: "hidden" }, text);
}

const whole = new Intl.NumberFormat("en-US");

function count(number) {
  return whole.format(number);
}

function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many || one + "s"}`;
}

function score(value, digits = 3) {
  return typeof value === "number" ? value.toFixed(digits) : "\u2013";
}

function change(value, digits = 3) {
  if (typeof value !== "number") return "\u2013";
  const shown = Math.abs(value).toFixed(digits);
  return Number(shown) === 0 ? shown : (value < 0 ? "\u2212" : "+") + shown;
}

function duration(ms) {
  if (typeof ms !== "number") return "\u2013";
  // Times of steps are recorded in tenths.
  if (ms === 0) return "<\u00a00.1 ms";
  if (ms < 0.1) return `${(ms * 1000).toFixed(1)} \u00b5s`;
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms.toFixed(0)} ms`;
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "");
  return h("dl", { class: "facts" }, shown.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function table(caption, head, rows, attributes) {
  const columns = head.map((cell) => (typeof cell === "string" ? h("th", { scope: "col" }, cell) : cell));
  const body = h("tbody", {}, rows);
  return h("table", attributes, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, columns)), body);
}

function number(...children) {
  return h("td", { class: "number" }, ...children);
}

function numberHead(...children) {
  return h("th", { scope: "col", class: "number" }, ...children);
}

function scroller(label, ...children) {
  // A region that scrolls must be reachable without a mouse.
  return h("div", { class: "scroller", role: "region", "aria-label": label, tabindex: "0" }, ...children);
}
