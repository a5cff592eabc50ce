// The page: one plan or two, their state in the address, and the audits in the folder.

import { DEFAULTS } from "./fields.js";
import { listFrontiers } from "./costs.js";
import { listWords } from "./glossary.js";
import { KeptPlans } from "./kept.js";
import { Plan, copy } from "./plan.js";

const WORDS = ["mode", "promise", "given", "mechanism", "sampling", "with_replacement", "adjacency", "frontier"];
const place = document.getElementById("plans");
const plans = new Map();

function announce(text) {
  document.getElementById("status").textContent = text;
}

/** The state of a plan in the address: `a.belief=0.75&a.records=60000`; what is not named there has its default. */
function read(name) {
  const address = new URLSearchParams(location.search);
  const state = { ...DEFAULTS };
  for (const key of Object.keys(DEFAULTS)) {
    const text = address.get(`${name}.${key}`);
    if (text === null) continue;
    if (WORDS.includes(key)) state[key] = text;
    else if (text !== "" && Number.isFinite(Number(text))) state[key] = Number(text);
  }
  return state;
}

const REST = 1200; // milliseconds after which a move is a new one, that Back takes back
let writings = [];
let unwritten = 0;
let moved = -Infinity;

/** Browsers allow about a hundred changes of the address in ten seconds; beyond, it follows when the slider rests. */
function writeSoon() {
  clearTimeout(unwritten);
  const now = performance.now();
  writings = writings.filter((time) => now - time < 10_000);
  if (writings.length < 80) write();
  else unwritten = setTimeout(write, 500);
}

function write() {
  clearTimeout(unwritten);
  writings.push(performance.now());
  const address = new URLSearchParams();
  for (const [name, { state }] of plans) {
    for (const key of Object.keys(DEFAULTS)) address.set(`${name}.${key}`, state[key]);
  }
  if (`?${address}` === location.search) return;
  const now = performance.now();
  const anew = now - moved > REST;
  moved = now;
  if (anew) history.pushState(null, "", `?${address}`);
  else history.replaceState(null, "", `?${address}`);
}

/** Back and Forward bring the plans of their time. */
function restore() {
  moved = -Infinity;
  compare(has("b"));
  for (const [name, plan] of plans) plan.restore(read(name));
}

function add(name, state) {
  const plan = new Plan(name, state, writeSoon, announce);
  plans.set(name, plan);
  place.append(plan.node);
}

function compare(two) {
  if (two && !plans.has("b")) add("b", has("b") ? read("b") : { ...plans.get("a").state });
  if (!two && plans.has("b")) {
    plans.get("b").destroy();
    plans.delete("b");
  }
  place.classList.toggle("two", two);
  const button = document.getElementById("compare");
  button.setAttribute("aria-pressed", two);
  button.textContent = two ? "Only plan A" : "Compare two plans";
}

function has(name) {
  return new URLSearchParams(location.search).has(`${name}.mode`);
}

function opened(run) {
  const item = document.createElement("li");
  const title = document.createElement(run.report ? "a" : "span");
  title.textContent = run.name;
  if (run.report) Object.assign(title, { href: run.report, target: "_blank", rel: "noopener" });
  const about = document.createElement("span");
  about.className = "about";
  about.textContent = `${run.verdict}${run.report ? "" : ", no report"}`;
  const summary = document.createElement("p");
  summary.textContent = run.title;
  item.append(title, " ", about, summary);
  return item;
}

const LOOK_AGAIN = 5000; // milliseconds, while a campaign is under way
const LAST_LOOKS = 12; // after the last one was: its report is written a moment after it is judged
let looksLeft = 0;
const shown = new Map(); // what was told of a run, and its item

/** The item of a run; the old one where nothing has changed, so that who reads or tabs through it is not disturbed. */
function itemOf(run) {
  const told = JSON.stringify(run);
  if (shown.get(run.name)?.told !== told) shown.set(run.name, { told, item: opened(run) });
  return shown.get(run.name).item;
}

async function lookAgain() {
  try {
    if (!document.hidden) await listRuns();
    else setTimeout(lookAgain, LOOK_AGAIN);
  } catch {
    setTimeout(lookAgain, LOOK_AGAIN); // the server is away: what was told stays
  }
}

async function listRuns() {
  const response = await fetch("api/runs");
  const { folder, runs } = await response.json();
  looksLeft = runs.some(({ kind }) => kind === "campaign") ? LAST_LOOKS : looksLeft - 1;
  if (looksLeft > 0) setTimeout(lookAgain, LOOK_AGAIN);
  listFrontiers(runs.filter(({ kind }) => kind === "frontier").map(({ name }) => name), [...plans.values()].map(({ costs }) => costs));
  if (folder === null) return;
  document.querySelector(".runs").hidden = false;
  const list = document.getElementById("runs");
  const none = Object.assign(document.createElement("li"), { textContent: "None yet: `deniable audit … --out` makes one." });
  const items = runs.length > 0 ? runs.map(itemOf) : [none];
  while (list.children.length > items.length) list.lastChild.remove();
  items.forEach((item, place) => {
    const old = list.children[place];
    if (old === undefined) list.append(item);
    else if (old !== item) old.replaceWith(item);
  });
}

const HERE = ["127.0.0.1", "localhost", "[::1]"];

/** Copy the link, and say where it does not lead. */
async function share() {
  const done = await copy(location.href, announce, document.getElementById("share"));
  const note = document.getElementById("share-note");
  note.hidden = !done || !HERE.includes(location.hostname);
  note.textContent = `This link opens on this machine only (${location.hostname}). To send a plan, send its command line below.`;
}

add("a", read("a"));
compare(has("b"));
document.getElementById("compare").addEventListener("click", () => {
  compare(!plans.has("b"));
  write();
});
document.getElementById("share").addEventListener("click", () => {
  write();
  share();
});
document.getElementById("print").addEventListener("click", () => window.print());
new KeptPlans(() => plans.get("a").state, (state, name) => {
  if (name === "b") compare(true);
  plans.get(name).restore({ ...DEFAULTS, ...state });
  write();
});
listWords();
window.addEventListener("popstate", restore);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plan of plans.values()) plan.recolour();
});
listRuns();
