// Words of the field: explained where the pointer or the keyboard's focus is, and all of them at the page's end.

import { GLOSSARY } from "./fields.js";

const WORDS = Object.keys(GLOSSARY).sort((a, b) => b.length - a.length);
const PATTERN = new RegExp(`\\b(${WORDS.map((word) => word.replaceAll("-", "\\-")).join("|")})\\b`, "i");
const PLACES = ".tiles dt, h3, figcaption, .engineering, .signal, .scores th, .expected";

const tip = Object.assign(document.createElement("div"), { id: "tip", className: "tip", hidden: true });
tip.setAttribute("role", "tooltip");
document.body.append(tip);

/** Make a button of the first known word of each short text: it tells its meaning on hover and on focus. */
export function explainWords(node) {
  for (const place of node.querySelectorAll(PLACES)) {
    if (place.querySelector(".word")) continue;
    for (const child of [...place.childNodes]) {
      const found = child.nodeType === Node.TEXT_NODE ? PATTERN.exec(child.data) : null;
      if (found) { wrap(child, found); break; }
    }
  }
}

function wrap(text, { 0: word, index }) {
  const rest = text.splitText(index);
  rest.data = rest.data.slice(word.length);
  const known = WORDS.find((one) => one.toLowerCase() === word.toLowerCase());
  const button = Object.assign(document.createElement("button"), { type: "button", className: "word", textContent: word });
  button.setAttribute("aria-describedby", "tip");
  for (const event of ["mouseenter", "focus"]) button.addEventListener(event, () => show(button, known));
  button.addEventListener("click", () => show(button, known));
  for (const event of ["mouseleave", "blur"]) button.addEventListener(event, hideSoon);
  rest.before(button);
}

let hiding = 0;

function show(button, word) {
  clearTimeout(hiding);
  tip.textContent = GLOSSARY[word];
  tip.hidden = false;
  const { left, bottom } = button.getBoundingClientRect();
  const most = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(8, Math.min(left, most)) + scrollX}px`;
  tip.style.top = `${bottom + 6 + scrollY}px`;
}

/** The pointer may travel onto the explanation itself. */
function hideSoon() {
  clearTimeout(hiding);
  hiding = setTimeout(() => { tip.hidden = true; }, 200);
}

tip.addEventListener("mouseenter", () => clearTimeout(hiding));
tip.addEventListener("mouseleave", hideSoon);
document.addEventListener("keydown", ({ key }) => { if (key === "Escape") tip.hidden = true; });

export function listWords() {
  const pairs = Object.entries(GLOSSARY).flatMap(([word, text]) => [
    Object.assign(document.createElement("dt"), { textContent: word }), Object.assign(document.createElement("dd"), { textContent: text }),
  ]);
  document.querySelector(".words dl").replaceChildren(...pairs);
}
