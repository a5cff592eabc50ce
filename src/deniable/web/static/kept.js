// Plans that are kept in this browser under a name: their settings alone; figures are asked for anew.

import { DEFAULTS, request } from "./fields.js";

const PLACE = "deniable.plans";

function read() {
  try {
    const found = JSON.parse(localStorage.getItem(PLACE) ?? "{}");
    return found !== null && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

function cell(tag, text) {
  return Object.assign(document.createElement(tag), { textContent: text });
}

export class KeptPlans {
  constructor(current, open) {
    this.current = current;
    this.open = open;
    this.table = document.querySelector(".kept-plans table");
    document.getElementById("keep").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = event.target.elements.name;
      this.#keep(field.value.trim());
      field.value = "";
    });
    addEventListener("storage", ({ key }) => { if (key === PLACE) this.show(); });
    this.show();
  }

  #keep(name) {
    if (name === "") return;
    const { document: file, ...state } = this.current();
    this.#write({ ...read(), [name]: state });
  }

  #write(plans) {
    try {
      localStorage.setItem(PLACE, JSON.stringify(plans));
    } catch {
      document.getElementById("status").textContent = "The browser does not keep plans here.";
    }
    this.show();
  }

  async show() {
    const plans = Object.entries(read());
    this.table.hidden = plans.length === 0;
    const rows = plans.map(([name, state]) => this.#row(name, { ...DEFAULTS, ...state }));
    this.table.tBodies[0].replaceChildren(...rows.map(({ row }) => row));
    for (const { fill } of rows) await fill();
  }

  #row(name, state) {
    const row = document.createElement("tr");
    const heading = Object.assign(cell("th", name), { scope: "row" });
    const figures = ["strength", "belief", "accuracy", "noise", "epsilon"].map((key) => Object.assign(cell("td", "…"), { className: key }));
    const actions = document.createElement("td");
    for (const [text, work] of [["Open", () => this.open(state, "a")], ["Open as B", () => this.open(state, "b")], ["Forget", () => this.#forget(name)]]) {
      const button = Object.assign(cell("button", text), { type: "button" });
      button.setAttribute("aria-label", `${text}: ${name}`);
      button.addEventListener("click", work);
      actions.append(button, " ");
    }
    row.append(heading, ...figures, actions);
    return { row, fill: () => fill(figures, state) };
  }

  #forget(name) {
    const { [name]: gone, ...rest } = read();
    this.#write(rest);
  }
}

/** Ask for a plan's figures and write them into their cells. */
async function fill(cells, state) {
  const question = request(state);
  let told = ["needs its file", "", "", "", ""];
  if (question !== null) {
    const response = await fetch(question);
    const body = await response.json();
    if (response.ok) {
      const { figures, document: { strength, scores } } = body;
      told = [strength.name, figures.belief, figures.accuracy, figures.noise ?? "given", figures.epsilon];
      const bar = Object.assign(cell("span", ""), { className: "bar" });
      bar.style.width = `${Math.max(1, 100 * scores.advantage)}%`;
      cells[2].replaceChildren(cell("span", told[2]), bar);
    } else told = [body.error.message, "", "", "", ""];
  }
  told.forEach((text, place) => { if (!cells[place].querySelector(".bar")) cells[place].textContent = text; });
}
