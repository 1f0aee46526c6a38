// Text of models and files, with invisible characters and marks of direction spelled out.

const ODD = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e" +
    "\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb\\u{e0000}-\\u{e0fff}]|\\p{Cs}",
  "gu",
);
const JOINERS = "\u200c\u200d";

function joins(text, index) {
  // Between letters of a script that needs them, or the parts of an emoji, joiners are spelling.
  return JOINERS.includes(text[index]) && text.charCodeAt(index - 1) > 0x7f && text.charCodeAt(index + 1) > 0x7f;
}

function codeName(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function visible(text) {
  const parts = document.createDocumentFragment();
  let from = 0;
  for (const match of text.matchAll(ODD)) {
    if (joins(text, match.index)) continue;
    parts.append(text.slice(from, match.index), h("span", { class: "odd" }, codeName(match[0])));
    from = match.index + match[0].length;
  }
  parts.append(text.slice(from));
  return parts;
}

// Blanks at the ends decide many exact matches, and readers overlook them.
function withEdges(text) {
  if (text === "") return h("span", { class: "nothing" }, "(empty)");
  const start = text.match(/^[ \t\n]*/)[0];
  const rest = text.slice(start.length);
  const end = rest.match(/[ \t\n]*$/)[0];
  return [blanks(start), visible(rest.slice(0, rest.length - end.length)), blanks(end)];
}

function blanks(text) {
  if (!text) return null;
  const names = { " ": "\u00b7", "\t": "\u21e5", "\n": "\u21b5\n" };
  const spoken = plural(text.length, "blank character");
  return [h("span", { class: "blank", "aria-hidden": "true" }, [...text].map((one) => names[one])), hidden(`[${spoken}]`)];
}

function snippet(text, limit = 90) {
  const flat = text.slice(0, limit * 4).replace(/\s+/g, " ").trim();
  return visible(flat.length > limit ? flat.slice(0, limit) + "\u2026" : flat);
}

function block(content, attributes) {
  return h("pre", { dir: "auto", ...attributes }, content);
}

// The end of a long text is the part that the model answered; the rest is folded.
function foldedHead(text, label, limit = 1600) {
  if (text.length <= limit) return block(withEdges(text));
  const near = text.indexOf("\n", text.length - limit);
  const at = near === -1 || near > text.length - limit / 2 ? text.length - limit : near + 1;
  return [fold(`${label}, ${count(at)} characters`, text.slice(0, at)), block(withEdges(text.slice(at)))];
}

function fold(label, text) {
  return foldOf(label, () => block(visible(text)));
}

function foldOf(label, content, attributes) {
  const details = h("details", { class: "fold", ...attributes }, h("summary", {}, label));
  details.addEventListener("toggle", () => details.childElementCount === 1 && details.append(content()));
  return details;
}

function plainText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function named(mapping) {
  return Object.entries(mapping).map(([name, value]) => [visible(name), valueOf(value)]);
}

function valueOf(value) {
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(6)));
  return visible(plainText(value));
}
