// What it costs: a frontier, measured on real data, at the promise of the plan.

import { costsChart, costsData } from "./charts.js";
import { FRONTIERS, PROMISES, FIELDS } from "./fields.js";

const OWN = "own";
const MOST_BYTES = 800_000; // of a file; what is sent of it is less
let runs = [];

/** Offer the frontiers of the served folder, too. */
export function listFrontiers(names, panels) {
  runs = names;
  for (const panel of panels) panel.offer();
}

/** In whose unit a plan's cost is told, and at which bound: its promise, or the advantage of what was released. */
function asked({ input, scores }, mode) {
  const promise = mode === "choose" ? Object.keys(PROMISES).find((name) => name !== "noise" && Number.isFinite(input[name])) : "advantage";
  const bound = mode === "choose" ? input[promise] : scores.advantage;
  if (promise === undefined || !Number.isFinite(bound)) return null;
  const { delta, prior, adjacency, records_per_person: person } = input;
  const usual = { fpr: input.fpr?.[0] ?? 0.01, baseline: input.baseline?.[0] ?? 0.01 };
  return { bound, question: { promise, delta, prior, ...usual, adjacency, records_per_person: person ?? 1 } };
}

/** Noise on single answers or on one number: no model is trained. */
function isNoTraining({ mechanism, laplace, randomized_response: response }) {
  return ["laplace", "randomized-response"].includes(mechanism) || laplace !== undefined || response !== undefined;
}

export class CostsPanel {
  #known = new Map(); // answers by question
  #wanted = "";
  #own = null; // the user's own document

  constructor(node, state, changed, told) {
    this.node = node;
    this.state = state;
    this.changed = changed;
    this.told = told; // hears the answer, with what is expected of the model
    this.chart = costsChart(this.at(".costs .chart"));
    this.select = this.at(".costs select");
    this.file = this.at('.costs input[type="file"]');
    this.select.addEventListener("change", () => this.#chosen());
    this.file.addEventListener("change", () => this.#read());
    this.offer();
  }

  at(selector) {
    return this.node.querySelector(selector);
  }

  offer() {
    const choices = { ...Object.fromEntries(Object.entries(FRONTIERS).map(([name, title]) => [name, title.split(":")[0]])),
      ...Object.fromEntries(runs.map((name) => [`run:${name}`, name])), [OWN]: "a file of mine …" };
    this.select.replaceChildren(...Object.entries(choices).map(([value, textContent]) => Object.assign(document.createElement("option"), { value, textContent })));
    this.select.value = this.state.frontier in choices ? this.state.frontier : Object.keys(FRONTIERS)[0];
    if (this.last) this.show(this.last);
  }

  choose(name) {
    this.state.frontier = name;
    this.offer();
  }

  #chosen() {
    this.state.frontier = this.select.value;
    this.file.hidden = this.select.value !== OWN;
    this.changed();
    if (this.last) this.show(this.last);
  }

  async #read() {
    const [file] = this.file.files;
    if (!file) return;
    try {
      if (file.size > MOST_BYTES) throw new Error("too large");
      const text = await file.text();
      this.file.value = ""; // so that the same file, changed meanwhile, can be chosen again
      this.#own = slim(JSON.parse(text));
      this.#known.clear();
      if (this.last) this.show(this.last);
    } catch {
      this.#say(`${file.name} is no frontier.json of deniable frontier.`);
    }
  }

  /** Tell the cost at an answer's promise. A moved slider asks nothing: the answer holds for every bound. */
  async show(document) {
    this.last = document;
    const found = asked(document, this.state.mode);
    if (isNoTraining(document.input)) return this.#say("Frontiers are measured for trainings with noise in the gradients; of this release nothing is known.");
    if (document.input.sampling) return this.#say("Frontiers are measured on Poisson batches. Other batches take other noise for the same promise, so that nothing is known of what is left here.");
    if (found === null) return this.#say("This promise has no unit in which a frontier could be told.");
    const name = this.select.value;
    if (name === OWN && this.#own === null) return this.#say("Choose the frontier.json that `deniable frontier DATA --out` wrote.");
    const body = JSON.stringify({ ...found.question, frontier: name === OWN ? this.#own : name });
    this.#wanted = body;
    if (!this.#known.has(body)) this.#known.set(body, await fetched(body));
    if (this.#wanted === body) this.#draw(this.#known.get(body), found.bound);
  }

  #say(text) {
    this.#wanted = "";
    this.told(this.last);
    this.at(".expected").textContent = text;
    this.at(".cost").hidden = true;
    this.at(".costs .chart").hidden = this.at(".costs details").hidden = true;
  }

  #draw({ ok, body }, bound) {
    if (!ok) return this.#say(`Not told: ${body.error.message}.`);
    const piece = body.pieces.find(({ above, up_to: most }) => (above === most ? bound === above : bound > above && (most === null || bound < most)));
    this.told(this.state.mode === "choose" ? { ...this.last, expected: piece.expected } : this.last);
    this.at(".costs .chart").hidden = this.at(".costs details").hidden = false;
    const text = piece.expected.text.replaceAll(" %", "\u00a0%");
    this.at(".expected").textContent = text;
    this.at(".expected").dataset.low = piece.expected.low;
    this.at(".expected").dataset.high = piece.expected.high;
    const short = this.at(".cost");
    short.hidden = false;
    const [own, none, base] = [tell(body, piece.expected), body.none.told, body.without_model_told].map((text) => text.replaceAll(" %", "\u00a0%"));
    short.textContent = `What it costs: expect ${own} ${body.measure.toLowerCase()} on ${body.title.split(":")[0]}. Without a promise ${none}, without a model ${base}.`;
    const grounds = [body.title, ...body.knee, ...body.notes, ...(body.command ? [`Measured with: ${body.command}`] : [])];
    this.at(".grounds").replaceChildren(...grounds.map((textContent) => Object.assign(document.createElement("p"), { textContent })));
    this.chart.costs = { ...body, share: FIELDS[body.promise].unit === "%" };
    this.chart.line = { at: bound, text: this.state.mode === "choose" ? "promised" : "this release" };
    const kind = `${body.promise} ${body.metric}`;
    this.chart.redraws = kind !== this.kind;
    this.kind = kind;
    this.chart.show(costsData(body), `${body.measure} against the promise; ${text}`);
  }

  recolour() {
    this.chart.recolour();
  }

  destroy() {
    this.chart.destroy();
  }
}

function tell({ percent }, { low, high }) {
  return percent ? `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)} %` : `${low.toPrecision(3)} to ${high.toPrecision(3)}`;
}

/** Without what the page does not show: a document may be large. */
function slim({ none, levels, without_model: base, encoding, local, ...rest }) {
  const only = (quality) => ({ ...quality, classes: [], groups: [] });
  const own = (level) => ({ ...level, quality: only(level.quality) });
  return { ...rest, none: own(none), levels: levels.map(own), without_model: only(base) };
}

async function fetched(body) {
  try {
    const response = await fetch("api/costs", { method: "POST", body, headers: { "Content-Type": "application/json" } });
    return { ok: response.ok, body: await response.json() };
  } catch {
    return { ok: false, body: { error: { message: "the server does not answer" } } };
  }
}
