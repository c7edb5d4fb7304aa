// What every page has: keys, and the buttons that copy; and how pages draw.
"use strict";

const PAGES = ["graph", "timeline", "waiting", "rows", "ticks"];

const SVG = "http://www.w3.org/2000/svg";

// An element of SVG; a text is a text, whatever is in it.
function make(tag, attributes = {}, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function short(text, most) { return text.length > most ? text.slice(0, most - 1) + "…" : text; }

function typing(target) {
  return target instanceof HTMLElement && target.matches("input, select, textarea, [contenteditable]") &&
    target.type !== "range";
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "h") location.assign("/");
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (event.key === "/") {
    const filter = document.querySelector("[data-filter]");
    if (filter) { event.preventDefault(); filter.focus(); }
  } else {
    const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link && PAGES[Number(event.key) - 1]) location.assign(link.href);
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  try { await navigator.clipboard.writeText(text); } catch { select(button.dataset.copy); return; }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

// Where a browser has no clipboard for a page, the text is selected, to be copied by hand.
function select(id) {
  const range = document.createRange();
  range.selectNodeContents(document.getElementById(id));
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}
