// A plan's form: every number as a slider with a number beside it, both the same setting.

import { ADJACENCIES, FIELDS, MECHANISMS, PROMISES, RELEASES, REPLACEMENTS, carried, isWritten, samplingOf, samplingsOf, shown } from "./fields.js";

const MOST_BYTES = 200_000; // of a file

let made = 0;
const tidy = (value) => Number(value.toPrecision(12));

function element(tag, properties = {}, children = []) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

export class Controls {
  constructor(form, state, changed) {
    this.form = form;
    this.state = state;
    this.changed = changed;
    const name = `mode-${(made += 1)}`;
    for (const radio of form.querySelectorAll(".mode input")) {
      radio.name = name;
      radio.addEventListener("change", () => this.#set("mode", radio.value, true));
    }
    form.addEventListener("submit", (event) => event.preventDefault());
    this.build();
  }

  build() {
    const { form, state } = this;
    for (const radio of form.querySelectorAll(".mode input")) radio.checked = radio.value === state.mode;
    const { subject, release, more } = shown(state);
    const choosing = state.mode === "choose";
    form.querySelector(".subject legend").textContent = choosing ? "The promise" : "What is given";
    const select = choosing ? this.#select("promise", "Promise by", PROMISES) : this.#select("given", "Given is", RELEASES);
    const file = isWritten(state) ? [this.#file()] : [];
    form.querySelector(".subject .fields").replaceChildren(select, ...file, ...subject.map((name) => this.#field(name)));
    const kinds = choosing ? [this.#select("mechanism", "Use", MECHANISMS)] : [];
    const samplings = samplingsOf(state);
    if (samplings) kinds.push(this.#select("sampling", "Batches are drawn", samplings, samplingOf(state)));
    const used = [...kinds, ...release.map((name) => (name === "with_replacement" ? this.#select(name, "Records are drawn", REPLACEMENTS) : this.#field(name)))];
    form.querySelector(".release").hidden = used.length === 0;
    form.querySelector(".release .fields").replaceChildren(...used);
    const strict = [...more.map((name) => this.#field(name)), this.#select("adjacency", "Neighbours differ by", ADJACENCIES)];
    form.querySelector(".more .fields").replaceChildren(...strict);
  }

  /** Remember what was answered: the same protection is carried over when the kind of promise changes. */
  answered(document) {
    this.protection = carried(document);
  }

  /** Put the last answer's protection into the field that is now asked for. */
  #carry() {
    const { mode, promise, given } = this.state;
    const name = mode === "choose" ? promise : given;
    if (this.protection && name in this.protection) this.state[name] = this.protection[name];
  }

  /** Mark the field that a refusal names. */
  mark(field) {
    for (const input of this.form.querySelectorAll("[data-field]")) {
      if (input.dataset.field === field) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  #set(name, value, rebuild = false) {
    this.state[name] = value;
    if (["mode", "promise", "given"].includes(name)) this.#carry();
    if (rebuild) {
      const focused = document.activeElement?.dataset?.field;
      this.build();
      if (focused) this.form.querySelector(`select[data-field="${focused}"]`)?.focus();
    }
    this.changed(name);
  }

  /** A file of another tool: its content stays in the page, and is sent with the question. */
  #file() {
    const id = `file-${(made += 1)}`;
    const { given, document: known } = this.state;
    const chosen = known?.kind === given ? `${known.name} is read.` : "JSON, at most 200 kB. It is sent to this planner alone.";
    const help = element("small", { id: `${id}-help`, textContent: chosen });
    const input = element("input", { id, type: "file", accept: ".json,application/json" });
    input.dataset.field = given;
    input.setAttribute("aria-describedby", help.id);
    input.addEventListener("change", async () => {
      const [file] = input.files;
      if (!file) return;
      const content = await contentOf(file);
      input.value = ""; // so that the same file, changed meanwhile, can be chosen again
      help.textContent = content.problem ?? `${file.name} is read.`;
      if (content.problem === undefined) this.#set("document", { kind: given, name: file.name, content: content.value });
    });
    return element("div", { className: "field" }, [element("label", { htmlFor: id, textContent: "File" }), input, help]);
  }

  #select(name, label, choices, chosen = String(this.state[name])) {
    const id = `${name}-${(made += 1)}`;
    const options = Object.entries(choices).map(([value, text]) => element("option", { value, textContent: text, selected: value === chosen }));
    const select = element("select", { id }, options);
    select.dataset.field = name;
    select.addEventListener("change", () => this.#set(name, select.value, true));
    return element("div", { className: "field" }, [element("label", { htmlFor: id, textContent: label }), select]);
  }

  #value(name) {
    if (name === "group") return Math.round(1 / this.state.prior);
    const value = this.state[name];
    return value === "" ? "" : FIELDS[name].unit === "%" ? tidy(value * 100) : value;
  }

  #take(name, value) {
    if (name === "group") this.#set("prior", 1 / value);
    else this.#set(name, value === "" ? "" : FIELDS[name].unit === "%" ? tidy(value / 100) : value);
    for (const twin of { group: ["prior"], prior: ["group"] }[name] ?? []) this.#refresh(twin);
  }

  #refresh(name) {
    const value = this.#value(name);
    for (const input of this.form.querySelectorAll(`[data-field="${name}"]`)) {
      if (input.type === "range") place(input, FIELDS[name], value);
      else input.value = value;
    }
  }

  #field(name) {
    const field = FIELDS[name];
    const id = `${name}-${(made += 1)}`;
    const help = element("small", { id: `${id}-help`, textContent: field.help });
    const number = element("input", { id, type: "number", step: field.whole ? "1" : "any", value: this.#value(name), inputMode: "decimal" });
    number.dataset.field = name;
    number.setAttribute("aria-describedby", help.id);
    const unit = element("span", { className: "unit", textContent: field.unit ?? "" });
    const label = element("label", { htmlFor: id, textContent: field.label });
    const row = element("div", { className: "row" }, [label, element("span", { className: "number" }, [number, unit])]);
    const slider = field.stops ? this.#slider(name, field) : null;
    number.addEventListener("input", () => {
      if (number.value === "" ? !field.optional : !number.validity.valid) return;
      this.#take(name, number.value === "" ? "" : Number(number.value));
      if (slider) place(slider, field, Number(number.value));
    });
    return element("div", { className: "field" }, [row, ...(slider ? [slider] : []), help]);
  }

  #slider(name, field) {
    const slider = element("input", { type: "range", min: 0, max: field.stops.length - 1, step: 1 });
    slider.dataset.field = name;
    slider.setAttribute("aria-label", `${field.label}, slider`);
    place(slider, field, this.#value(name));
    slider.addEventListener("input", () => {
      const value = field.stops[slider.valueAsNumber];
      slider.setAttribute("aria-valuetext", `${value} ${field.unit ?? ""}`.trim());
      this.form.querySelector(`input[type=number][data-field="${name}"]`).value = value;
      this.#take(name, value);
    });
    return slider;
  }
}

/** A file's JSON, or what is wrong with it. */
async function contentOf(file) {
  if (file.size > MOST_BYTES) return { problem: `${file.name} is larger than 200 kB: use the command line.` };
  try {
    const value = JSON.parse(await file.text());
    return value !== null && typeof value === "object" ? { value } : { problem: `${file.name} holds neither a list nor an object.` };
  } catch {
    return { problem: `${file.name} is not JSON.` };
  }
}

/** Put a slider at the stop nearest to a value. */
function place(slider, field, value) {
  let best = 0;
  field.stops.forEach((stop, i) => {
    if (Math.abs(Math.log(stop / value)) < Math.abs(Math.log(field.stops[best] / value))) best = i;
  });
  slider.value = best;
  slider.setAttribute("aria-valuetext", `${value} ${field.unit ?? ""}`.trim());
}
