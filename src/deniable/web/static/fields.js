// What can be asked: every setting with its label, its slider and its place. Shares are shown in per cent.

/** Slider stops on a logarithmic scale, at two significant digits: a moved slider asks the same questions again. */
function stops(low, high, whole = false) {
  const found = new Set();
  const perDecade = 20;
  for (let i = Math.ceil(Math.log10(low) * perDecade); i <= Math.log10(high) * perDecade + 1e-9; i += 1) {
    const value = Number((10 ** (i / perDecade)).toPrecision(2));
    found.add(whole ? Math.max(1, Math.round(value)) : value);
  }
  return [low, ...[...found].filter((value) => value > low && value < high), high];
}

function percent(low, high, step = 1) {
  const found = [];
  for (let value = low; value <= high + 1e-9; value += step) found.push(Number(value.toPrecision(4)));
  return found;
}

/** The table of scores and releases, as the server has it. */
const table = await (await fetch("fields.json")).json();

function made({ stops: ends, scale, usual, ...field }) {
  if (ends === null) return { ...field, optional: true };
  return { ...field, stops: scale === "linear" ? percent(...ends) : stops(...ends, field.whole) };
}

export const FIELDS = {
  ...Object.fromEntries(Object.entries(table.fields).map(([name, field]) => [name, made(field)])),
  group: { label: "… as one of k people", help: "A group of k makes the prior 1/k.", whole: true, stops: stops(2, 1000, true) },
};

export const PROMISES = table.promises;
export const RELEASES = table.releases;

export const MECHANISMS = {
  gaussian: "training a model (DP-SGD)", laplace: "one release with Laplace noise", "randomized-response": "randomized answers (local)",
};

export const ADJACENCIES = {
  "add-remove": "one record more or less", replace: "one record exchanged", "zero-out": "one record blanked out",
};

export const DEFAULTS = {
  mode: "choose", promise: "belief", given: "noise", mechanism: "gaussian", adjacency: "add-remove",
  ...Object.fromEntries(Object.entries(table.fields).map(([name, { usual }]) => [name, usual ?? ""])),
};

/** The settings that matter for a state, by fieldset. */
export function shown(state) {
  const subject = state.mode === "choose" ? state.promise : state.given;
  const release = state.mode === "choose" ? state.mechanism : { noise: "gaussian", randomized_response: "randomized-response" }[subject];
  const described = { gaussian: ["records", "batch", "epochs"], "randomized-response": ["categories", "features"] }[release] ?? [];
  return { subject: [subject], release: described, more: table.parameters.flatMap((name) => (name === "prior" ? [name, "group"] : [name])) };
}

/** The request of a state: where it goes, and its parameters. */
export function request(state) {
  const { subject, release } = shown(state);
  const given = [...subject, ...release, ...table.parameters].filter((name) => state[name] !== "");
  const asked = Object.fromEntries(given.map((name) => [name, state[name]]));
  if (state.adjacency !== DEFAULTS.adjacency) asked.adjacency = state.adjacency;
  if (state.mode === "choose" && state.mechanism !== "gaussian") asked.mechanism = state.mechanism;
  return `api/plan/${state.mode}?${new URLSearchParams(asked)}`;
}

/** The states one and two stops of a slider away. */
export function neighbours(state, name) {
  const field = FIELDS[name];
  if (!field?.stops || name === "group") return [];
  const scale = field.unit === "%" ? 100 : 1;
  const at = field.stops.findIndex((stop) => stop >= state[name] * scale - 1e-9);
  return [1, -1, 2, -2].map((step) => field.stops[at + step])
    .filter((stop) => stop !== undefined)
    .map((stop) => ({ ...state, [name]: Number((stop / scale).toPrecision(12)) }));
}
