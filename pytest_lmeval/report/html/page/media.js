// The images, audio and files of messages. A content is a text, or a list of texts and records of media.

const MEDIA_KINDS = ["image", "audio", "file"];
let mediaKnown = null;

// Returns the format and size of a file by its SHA-256, and whether the page has its bytes or a link.
function factsOf(part) {
  const block = document.getElementById("media");
  mediaKnown ||= new Map(block ? Object.entries(JSON.parse(block.textContent)) : []);
  return mediaKnown.get(part.sha256) || {};
}

const kindOf = (part) => MEDIA_KINDS.find((kind) => typeof part[kind] === "string");

function isContent(value) {
  const isPart = (part) => typeof part === "string" || (part !== null && typeof part === "object" && kindOf(part) !== undefined);
  return typeof value === "string" || (Array.isArray(value) && value.length > 0 && value.every(isPart));
}

function nameOfMedia(part) {
  const { is } = factsOf(part);
  const kind = kindOf(part);
  return `${kind} ${part[kind]}${is ? `, ${is}` : ""}`;
}

// A content as text, as in the ledger's prompt.
function wordsOf(content) {
  return typeof content === "string" ? content : content.map((part) => (typeof part === "string" ? part : `[${nameOfMedia(part)}]`)).join("\n");
}

function contentBlock(content) {
  const shown = (text) => foldedHead(text, "The text before this", 6000);
  return typeof content === "string" ? shown(content) : content.map((part) => (typeof part === "string" ? shown(part) : mediaFigure(part)));
}

function mediaFigure(part) {
  const { here, link, is_large: isLarge } = factsOf(part);
  const name = nameOfMedia(part);
  const why = here || link || !part.sha256 ? "" : isLarge ? ": too large for this page" : ": the file is not there";
  const caption = h("figcaption", {}, link ? h("a", { href: link }, visible(name)) : visible(name), why);
  return h("figure", { class: "media" }, here && embedded(part, name), caption);
}

function embedded(part, name) {
  const source = JSON.parse(document.getElementById(`media-${part.sha256}`).textContent);
  if (kindOf(part) === "audio") return h("audio", { controls: true, preload: "metadata", src: source, "aria-label": name });
  const label = `Open larger: ${name}`;
  return h("button", { type: "button", class: "picture", "aria-label": label, onclick: () => openLarger(source, name) }, h("img", { src: source, alt: name }));
}

function openLarger(source, name) {
  const dialog = h("dialog", { class: "larger", "aria-label": name });
  const close = h("button", { type: "button" }, "Close");
  fill(dialog, {}, [h("p", {}, h("span", {}, visible(name)), close), h("img", { src: source, alt: name })]);
  dialog.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  // While the dialog is open, the page ignores its keys, such as Escape.
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  document.body.append(dialog);
  dialog.showModal();
}
