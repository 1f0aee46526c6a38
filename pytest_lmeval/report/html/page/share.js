// Share a view: its address, and its tables as CSV.

function linkButton() {
  const said = h("span", { class: "hidden", role: "status" });
  const button = h("button", { type: "button", class: "quiet", id: "copy-link", onclick: () => copyAddress(button, said) }, "Copy link");
  return h("span", {}, button, said);
}

async function copyAddress(button, said) {
  try {
    await navigator.clipboard.writeText(location.href);
    said.textContent = "The address of this view is copied.";
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy link"), 2000);
  } catch {
    // A page that came by an insecure connection may not write to the clipboard: a reader copies it by hand.
    const field = h("input", { class: "address", readonly: true, value: location.href, "aria-label": "Address of this view" });
    button.replaceWith(field);
    field.select();
  }
}

// A spreadsheet program runs text that begins like a formula, and a model's text may begin so.
const FORMULA = /^[=+\-@\t\r]/;

function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) && Number.isNaN(Number(value)) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csvText(rows) {
  return rows.map((row) => row.map(csvCell).join(",") + "\r\n").join("");
}

// A table of the page as shown; the numbers of its drawings are beside them.
function csvOfTable(node) {
  const lines = [...node.querySelectorAll("tr")].map((row) => [...row.children].filter((cell) => !cell.classList.contains("plotted")));
  return lines.map((cells) => cells.map((cell) => cell.textContent.replace(/\s+/g, " ").trim()));
}

function csvButton(name, rowsOf) {
  return h("button", { type: "button", class: "quiet csv", onclick: () => download(`${name}.csv`, csvText(rowsOf())) }, "CSV", hidden(`: download ${name}`));
}

function download(name, text) {
  // The mark at the beginning tells spreadsheet programs that the file is UTF-8.
  const link = h("a", { href: URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
