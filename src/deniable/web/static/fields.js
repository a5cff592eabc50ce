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
export const GLOSSARY = table.glossary;
export const DEPLOYMENTS = table.deployments;
export const FRONTIERS = table.frontiers;
export const STRENGTHS = table.strengths;
export const WRITTEN = table.written;
export const RELEASES = { ...table.releases, ...WRITTEN };
export const SAMPLINGS = Object.fromEntries(Object.entries(table.samplings).map(([name, { label }]) => [name, label]));
/** How Opacus's batches were drawn, of which its history says nothing. */
export const OPACUS_SAMPLINGS = { poisson: SAMPLINGS.poisson, shuffled: SAMPLINGS.shuffled, unknown: "in an unknown way" };
export const REPLACEMENTS = { "": "without replacement", true: "with replacement" };

export const MECHANISMS = {
  gaussian: "training a model (DP-SGD)", laplace: "one release with Laplace noise", "randomized-response": "randomized answers (local)",
};

export const ADJACENCIES = {
  "": "usual for this release", "add-remove": "one record more or less", replace: "one record exchanged", "zero-out": "one record blanked out",
};

export const DEFAULTS = {
  mode: "choose", promise: "belief", given: "noise", mechanism: "gaussian", sampling: "poisson", with_replacement: "", adjacency: "", frontier: "adult",
  ...Object.fromEntries(Object.entries(table.fields).map(([name, { usual }]) => [name, usual ?? ""])),
};

/** Whether a file of another tool describes the release. */
export function isWritten(state) {
  return state.mode === "explain" && state.given in WRITTEN;
}

/** What kind of release is described: a training, a local mechanism, or something that needs no more words. */
function kindOf(state) {
  if (state.mode === "choose") return state.mechanism;
  return { noise: "gaussian", randomized_response: "randomized-response" }[state.given];
}

/** How batches may be drawn, if that matters. */
export function samplingsOf(state) {
  if (kindOf(state) === "gaussian") return SAMPLINGS;
  return isWritten(state) && state.given === "opacus" ? OPACUS_SAMPLINGS : null;
}

/** How batches are drawn; a word that does not fit is the usual one. */
export function samplingOf(state) {
  return state.sampling in (samplingsOf(state) ?? {}) ? state.sampling : "poisson";
}

/** The settings that matter for a state, by fieldset. */
export function shown(state) {
  const subject = isWritten(state) ? [] : [state.mode === "choose" ? state.promise : state.given];
  const described = { gaussian: () => table.samplings[samplingOf(state)].fields, "randomized-response": () => ["categories", "features"] };
  const release = described[kindOf(state)]?.() ?? [];
  return { subject, release, more: [...table.parameters.flatMap((name) => (name === "prior" ? [name, "group"] : [name])), table.person] };
}

/** The request of a state: its address, and after a line's end its body where there is one; null while a file lacks. */
export function request(state) {
  const { subject, release } = shown(state);
  const given = [...subject, ...release, ...table.parameters].filter((name) => state[name] !== "");
  const asked = Object.fromEntries(given.map((name) => [name, state[name]]));
  if (state.adjacency !== "") asked.adjacency = state.adjacency;
  if (state[table.person] > 1) asked[table.person] = state[table.person];
  if (samplingOf(state) !== "poisson") asked.sampling = samplingOf(state);
  if (state.mode === "choose" && state.mechanism !== "gaussian") asked.mechanism = state.mechanism;
  if (!isWritten(state)) return `api/plan/${state.mode}?${new URLSearchParams(asked)}`;
  if (state.document?.kind !== state.given) return null;
  const lists = Object.fromEntries(table.lists.filter((name) => name in asked).map((name) => [name, [asked[name]]]));
  return `api/plan/explain\n${JSON.stringify({ ...asked, ...lists, [state.given]: state.document.content })}`;
}

/** What a file or a slider takes as the same protection: every promise's value of the last answer, rounded to the strict side. */
export function carried(document) {
  const { scores } = document;
  const single = ["belief", "advantage", "accuracy", "epsilon"].map((name) => [name, scores[name]]);
  const listed = ["tpr", "ppv", "success"].map((name) => [name, scores[name]?.[0]?.[name]]);
  const known = [...single, ...listed].filter(([, value]) => Number.isFinite(value)).map(([name, value]) => [name, rounded(value, Math.floor)]);
  if (Number.isFinite(document.noise)) known.push(["noise", rounded(document.noise, Math.ceil)]);
  return Object.fromEntries(known.filter(([name, value]) => isAsked(name, value)));
}

/** To six digits, towards the strict side; a value that has fewer stays as it is. */
function rounded(value, towards) {
  const near = Number(value.toPrecision(12));
  if (Number(near.toPrecision(6)) === near) return near;
  const scale = 10 ** (5 - Math.floor(Math.log10(Math.abs(near))));
  return Number((towards(near * scale) / scale).toPrecision(12));
}

function isAsked(name, value) {
  const { quick } = table.fields[name];
  return value >= quick[0] && value <= quick[1];
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
