// One plan: its form, its question to the server and what comes back, as text and pictures.

import { Asker } from "./asker.js";
import { beliefChart, beliefData, rocChart, rocData } from "./charts.js";
import { Controls } from "./controls.js";
import { neighbours, request } from "./fields.js";

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
    this.controls = new Controls(this.at("form"), state, (name) => this.moved(name));
    this.asker = new Asker((answer) => this.show(answer), (waiting) => this.node.setAttribute("aria-busy", waiting));
    for (const [button, source] of [["text", ".assessment"], ["command", ".command"], ["python", ".python"]]) {
      this.at(`.copy-${button}`).addEventListener("click", () => copy(this.at(source).textContent, announce));
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
    this.#idle = setTimeout(() => this.asker.prefetch(neighbours(this.state, name).map(request)), IDLE);
  }

  ask() {
    this.asker.ask(request(this.state));
  }

  destroy() {
    this.roc.destroy();
    this.beliefs.destroy();
    this.node.remove();
  }

  recolour() {
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
      problem.textContent = sentence(body.error.message);
      return;
    }
    this.at(".lead").textContent = body.headline;
    this.at(".rest").textContent = body.meaning;
    this.at(".assessment").textContent = body.assessment;
    this.at(".command").textContent = body.command;
    this.at(".python").textContent = body.python;
    this.at(".notes").textContent = [...body.notes, body.setting].join(" ");
    this.#download(body.document);
    tiles(this.at(".tiles"), body);
    rows(this.at(".scores tbody"), body.scores);
    methods(this.at(".methods"), body);
    this.#draw(body);
  }

  #draw({ curves, figures }) {
    this.roc.show(rocData(curves.roc), `Trade-off curve of the strongest attack; its advantage over blind guessing is at most ${figures.advantage}.`);
    this.beliefs.show(beliefData(curves.beliefs), `Distribution of the observer's final belief; exceeded only as often as delta allows: ${figures.belief}.`);
  }

  #download(document) {
    const link = this.at(".json");
    if (link.href.startsWith("blob:")) URL.revokeObjectURL(link.href);
    link.href = URL.createObjectURL(new Blob([JSON.stringify(document, null, 2)], { type: "application/json" }));
    link.download = `plan-${this.name}.json`;
  }
}

export async function copy(text, announce) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied.");
  } catch {
    announce("The browser did not allow copying: select the text instead.");
  }
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

function tiles(list, { figures, document: { input } }) {
  const named = [
    ["noise", { laplace: "Laplace scale", "randomized-response": "Epsilon an answer" }[input.mechanism] ?? "Noise"],
    ["belief", "Belief"], ["advantage", "Advantage"], ["accuracy", "Accuracy"], ["epsilon", "Epsilon"],
  ].filter(([name]) => name in figures);
  list.replaceChildren(...named.map(([name, label]) => {
    const tile = document.createElement("div");
    tile.dataset.figure = name;
    tile.append(cell("dt", label), cell("dd", figures[name]));
    return tile;
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
  section.querySelector("h3").textContent = choosing ? "Noise that each analysis demands for this promise" : "The same release by weaker analyses";
  const columns = choosing ? ["noise", "ratio"] : ["epsilon", "advantage"];
  const unit = input.mechanism === "randomized-response" ? "1 / epsilon" : "noise";
  const titles = choosing ? ["Analysis", unit, "× exact"] : ["Analysis", "epsilon", "advantage"];
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
