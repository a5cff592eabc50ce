// One plan: its form, its question to the server and what comes back, as text and pictures.

import { Asker } from "./asker.js";
import { beliefChart, beliefData, rocChart, rocData } from "./charts.js";
import { Controls } from "./controls.js";
import { CostsPanel } from "./costs.js";
import { DEPLOYMENTS, FIELDS, STRENGTHS, neighbours, request } from "./fields.js";
import { explainWords } from "./glossary.js";

const IDLE = 700;

export class Plan {
  #idle = 0;
  #unsaid = false; // whether a move is not in the address yet

  constructor(name, state, changed, announce) {
    this.name = name;
    this.state = state;
    this.changed = changed;
    this.announce = announce;
    this.node = document.getElementById("plan-template").content.firstElementChild.cloneNode(true);
    this.node.dataset.plan = name;
    this.node.setAttribute("aria-label", `Plan ${name.toUpperCase()}`);
    this.at(".plan-name").textContent = `Plan ${name.toUpperCase()}`;
    this.roc = rocChart(this.at(".roc .chart"));
    this.beliefs = beliefChart(this.at(".beliefs .chart"));
    this.costs = new CostsPanel(this.node, state, () => this.changed(), (document) => this.#download(document));
    deployments(this.at(".why tbody"));
    this.at(".why .scroll").setAttribute("aria-label", `Well-known deployments beside plan ${name.toUpperCase()}`);
    this.controls = new Controls(this.at("form"), state, (name) => this.moved(name));
    this.asker = new Asker((answer) => this.show(answer), (waiting) => this.node.setAttribute("aria-busy", waiting));
    for (const [button, source] of [["text", ".assessment"], ["command", ".command"], ["python", ".python"], ["opacus", ".opacus"], ["pytorch", ".pytorch"]]) {
      this.at(`.copy-${button}`).addEventListener("click", ({ currentTarget }) => copy(this.at(source).textContent, announce, currentTarget));
    }
    this.ask();
  }

  at(selector) {
    return this.node.querySelector(selector);
  }

  moved(name) {
    clearTimeout(this.#idle);
    this.#unsaid = true;
    this.ask();
    this.#idle = setTimeout(() => this.asker.prefetch(neighbours(this.state, name).map(request).filter((question) => question !== null)), IDLE);
  }

  ask() {
    const question = request(this.state);
    this.node.classList.toggle("stale", question === null);
    if (question !== null) this.asker.ask(question);
  }

  /** Show another state, as Back and Forward do. */
  restore(state) {
    clearTimeout(this.#idle);
    this.#unsaid = false;
    Object.assign(this.state, state);
    this.controls.build();
    this.costs.choose(state.frontier);
    this.ask();
  }

  destroy() {
    this.costs.destroy();
    this.roc.destroy();
    this.beliefs.destroy();
    this.node.remove();
  }

  recolour() {
    this.costs.recolour();
    this.roc.recolour();
    this.beliefs.recolour();
  }

  show(answer) {
    if (this.#unsaid) this.changed();
    this.#unsaid = false;
    this.#show(answer);
  }

  #show({ ok, body }) {
    const problem = this.at(".problem");
    problem.hidden = ok;
    this.node.classList.toggle("stale", !ok);
    this.controls.mark(ok ? null : body.error.field);
    if (!ok) {
      problem.textContent = sentence(inPercent(body.error));
      return;
    }
    this.at(".caution").textContent = unbroken(body.caution);
    this.at(".caution").hidden = body.caution === "";
    this.at(".lead").textContent = unbroken(body.headline);
    this.at(".warning").textContent = unbroken(body.warning);
    this.at(".warning").hidden = body.warning === "";
    this.at(".rest").textContent = unbroken(body.meaning);
    this.at(".kept").textContent = body.kept;
    this.at(".engineering").textContent = body.engineering;
    this.at(".signal").textContent = unbroken(body.signal);
    this.at(".todo").hidden = body.kept === "" && body.signal === "";
    for (const [name, text] of [["opacus", body.opacus], ["pytorch", body.pytorch]]) {
      this.at(`.${name}`).textContent = text;
      this.at(`.${name}`).closest(".export").hidden = text === "";
    }
    strength(this.node, body.document.strength);
    this.controls.answered(body.document);
    this.costs.show(body.document);
    this.at(".assessment").textContent = body.assessment;
    this.at(".command").textContent = body.command;
    this.at(".python").textContent = body.python;
    this.at(".notes").textContent = [...body.notes, body.setting].join(" ");
    tiles(this.at(".tiles"), body);
    rows(this.at(".scores tbody"), body.scores);
    methods(this.at(".methods"), body);
    explainWords(this.at(".results"));
    this.#draw(body);
  }

  #draw({ curves, figures, document: { input, scores } }) {
    const promised = this.state.mode === "choose" && input.belief !== undefined;
    this.beliefs.line = { at: promised ? input.belief : scores.belief, text: promised ? "promised" : "limit" };
    this.roc.show(rocData(curves.roc), `Trade-off curve of the strongest attack; its advantage over blind guessing is at most ${figures.advantage}.`);
    this.beliefs.show(beliefData(curves.beliefs), `Distribution of the observer's final belief; the limit on it is ${figures.belief}.`);
  }

  /** The answer as a file, with what is expected of the model where that is told. */
  #download(document) {
    const link = this.at(".json");
    if (link.href.startsWith("blob:")) URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob([JSON.stringify(document, null, 2)], { type: "application/json" }));
    link.download = `plan-${this.name}.json`;
  }
}

/** Copy, and say so on the button that was pressed, where the eye is. */
export async function copy(text, announce, button) {
  const label = (button.dataset.label ??= button.textContent);
  const say = (words, sign) => {
    announce(words);
    button.textContent = sign;
    clearTimeout(button.timer);
    button.timer = setTimeout(() => { button.textContent = label; }, 2500);
  };
  try {
    await navigator.clipboard.writeText(text);
    say("Copied.", "Copied ✓");
    return true;
  } catch {
    say("The browser did not allow copying: select the text instead.", "Not allowed: select it");
    return false;
  }
}

/** A refusal in the unit of its field: the form shows shares in per cent, so its errors do, too. */
function inPercent({ field, message }) {
  if (FIELDS[field]?.unit !== "%") return message;
  const [plain] = message.split(": did you mean");
  const numbers = /(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.]*\w)/gi;
  const shares = plain.replace(numbers, (number) => `${Number((Number(number) * 100).toPrecision(6))} %`);
  return shares.replace(/'([^']* %)'/, "$1").replace(new RegExp(`^${field}`), FIELDS[field].label);
}

/** No line ends between a number and its per cent. */
function unbroken(text) {
  return text.replaceAll(" %", "\u00a0%");
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function cell(tag, text, className = "") {
  const node = document.createElement(tag);
  node.textContent = text;
  if (className) node.className = className;
  return node;
}

function tiles(list, { figures, document: { input, scores } }) {
  const named = [
    ["belief", scores.belief_delta >= 0.05 ? "How sure, but not always" : "How sure, at most"], ["accuracy", "Attack's right guesses"], ["advantage", "Attack's advantage"],
    ["noise", { laplace: "Laplace scale", "randomized-response": "Epsilon an answer" }[input.mechanism] ?? "Noise multiplier"],
    ["epsilon", "Epsilon"],
  ].filter(([name]) => name in figures);
  list.replaceChildren(...named.map(([name, label]) => {
    const tile = document.createElement("div");
    tile.dataset.figure = name;
    tile.append(cell("dt", label), cell("dd", figures[name]));
    return tile;
  }));
}

/** The name on the scale, what follows from it, and the reasons. */
function strength(node, found) {
  for (const place of node.querySelectorAll(".strength, .why")) place.hidden = !found;
  if (!found) return;
  const graded = node.querySelector(".graded");
  node.querySelector(".strength").dataset.name = found.name;
  graded.querySelector("strong").textContent = `${found.name === "hardly any" ? "Hardly any" : found.name.charAt(0).toUpperCase() + found.name.slice(1)} protection.`;
  graded.querySelector("span").textContent = found.advice;
  node.querySelector(".scale").replaceChildren(...STRENGTHS.map((name) => cell("li", name, name === found.name ? "here" : "")));
  node.querySelector(".reasons").replaceChildren(...found.reasons.map((reason) => cell("li", unbroken(reason))));
}

function deployments(body) {
  body.replaceChildren(...DEPLOYMENTS.map((one) => {
    const row = document.createElement("tr");
    const heading = cell("th", one.name);
    heading.scope = "row";
    heading.title = one.source;
    const gaussian = one.right_if_gaussian === undefined ? "" : ` (${unbroken(one.right_if_gaussian)}, ${one.strength_if_gaussian})`;
    row.append(heading, cell("td", one.unit), cell("td", one.promise), cell("td", `${unbroken(one.right)}, ${one.strength}${gaussian}`));
    return row;
  }));
}

function rows(body, found) {
  body.replaceChildren(...found.map(([label, text]) => {
    const row = document.createElement("tr");
    const heading = cell("th", label.trim(), label.startsWith(" ") ? "sub" : "");
    heading.scope = "row";
    row.append(heading, cell("td", text));
    return row;
  }));
}

/** What classical methods demand (or, of a given release, what they say), with a bar on a logarithmic scale. */
function methods(section, { demands, analyses, document: { input, methods: found = [] } }) {
  const choosing = demands.length > 0;
  const shown = choosing ? demands : analyses;
  section.hidden = shown.length === 0;
  section.querySelector(".hint").hidden = !choosing;
  section.querySelector("h3").textContent = choosing ? "Noise that each analysis demands for this promise" : "The same release by weaker analyses";
  const columns = choosing ? ["noise", "ratio"] : ["epsilon", "advantage"];
  const unit = input.mechanism === "randomized-response" ? "1 / epsilon" : "noise";
  const titles = choosing ? ["Analysis", unit, `× ${shown[0].label}`] : ["Analysis", "epsilon", "advantage"];
  const head = document.createElement("tr");
  head.append(...titles.map((title) => Object.assign(cell("th", title), { scope: "col" })));
  section.querySelector("thead").replaceChildren(head);
  const noises = new Map(found.map((method) => [method.name, method.noise]));
  const exact = noises.get("exact");
  const widest = Math.max(1, ...[...noises.values()].map((noise) => Math.log10((noise ?? exact) / exact)));
  section.querySelector("tbody").replaceChildren(...shown.map((row) => {
    const line = document.createElement("tr");
    line.dataset.method = row.name;
    const heading = Object.assign(cell("th", row.label), { scope: "row" });
    if (choosing && noises.get(row.name)) {
      const bar = cell("span", "", "bar");
      bar.style.width = `${4 + (96 * Math.log10(noises.get(row.name) / exact)) / widest}%`;
      heading.append(bar);
    }
    line.append(heading, ...columns.map((column) => cell("td", row[column])));
    return line;
  }));
}
