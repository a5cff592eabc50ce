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

const share = (label, help, low = 51, high = 99) => ({ label, help, unit: "%", stops: percent(low, high) });

export const FIELDS = {
  belief: share("Nobody becomes surer than", "Belief that the person is in the data, seen from the prior below."),
  advantage: share("Advantage of any attack", "True positive rate minus false positive rate.", 1, 99),
  accuracy: share("Right guesses of any attack", "Share of right guesses about membership."),
  ppv: share("Members among the accused", "Of those an attack accuses, at most this share are members.", 2, 99),
  tpr: { label: "Members found by any attack", help: "At the false positive rate below.", unit: "%", stops: stops(0.02, 50) },
  epsilon: { label: "Epsilon", help: "Of an (epsilon, delta) guarantee.", stops: stops(0.05, 20) },
  noise: { label: "Noise", help: "Standard deviation of the noise / sensitivity, in every step.", stops: stops(0.3, 50) },
  gdp: { label: "Mu", help: "Of a mu-GDP guarantee.", stops: stops(0.02, 10) },
  tvd: share("Total variation", "Membership advantage of at most this.", 1, 99),
  laplace: { label: "Laplace scale", help: "Scale of the noise / sensitivity.", stops: stops(0.1, 50) },
  randomized_response: { label: "Epsilon of each answer", help: "The true value is e^epsilon times as likely as another.", stops: stops(0.05, 10) },
  records: { label: "Records", help: "People in the training data.", whole: true, stops: stops(100, 10_000_000, true) },
  batch: { label: "Batch", help: "Records in a step, on average.", whole: true, stops: stops(1, 100_000, true) },
  epochs: { label: "Epochs", help: "Passes over the data.", whole: true, stops: stops(1, 1000, true) },
  categories: { label: "Possible answers", help: "To each question.", whole: true, stops: stops(2, 1000, true) },
  features: { label: "Questions", help: "Answers of each person.", whole: true, stops: stops(1, 1000, true) },
  prior: { label: "Belief before the release", help: "What the observer believes already.", unit: "%", stops: percent(1, 99) },
  group: { label: "… as one of k people", help: "A group of k makes the prior 1/k.", whole: true, stops: stops(2, 1000, true) },
  fpr: { label: "False positive rate", help: "Others that an attack accuses wrongly.", unit: "%", stops: stops(0.01, 20) },
  delta: { label: "Delta", help: "How often the belief may be exceeded. Empty: 1/records, else 0.00001.", optional: true },
};

export const PROMISES = {
  belief: "a posterior belief", advantage: "a membership advantage", accuracy: "an attack accuracy",
  ppv: "a predictive value (PPV)", tpr: "a detection rate (TPR)", epsilon: "an epsilon",
};

export const RELEASES = {
  noise: "a noise in training", epsilon: "an (epsilon, delta) guarantee", gdp: "a mu-GDP guarantee",
  tvd: "a total variation", laplace: "Laplace noise", randomized_response: "randomized response",
};

export const MECHANISMS = {
  gaussian: "training a model (DP-SGD)", laplace: "one release with Laplace noise", "randomized-response": "randomized answers (local)",
};

export const ADJACENCIES = {
  "add-remove": "one record more or less", replace: "one record exchanged", "zero-out": "one record blanked out",
};

export const DEFAULTS = {
  mode: "choose", promise: "belief", given: "noise", mechanism: "gaussian", adjacency: "add-remove",
  belief: 0.75, advantage: 0.1, accuracy: 0.6, ppv: 0.6, tpr: 0.05, epsilon: 1, noise: 1, gdp: 1, tvd: 0.1, laplace: 1,
  randomized_response: 1, records: 60000, batch: 300, epochs: 30, categories: 2, features: 1, prior: 0.5, fpr: 0.01, delta: "",
};

/** The settings that matter for a state, by fieldset. */
export function shown(state) {
  const subject = state.mode === "choose" ? state.promise : state.given;
  const release = state.mode === "choose" ? state.mechanism : { noise: "gaussian", randomized_response: "randomized-response" }[subject];
  const described = { gaussian: ["records", "batch", "epochs"], "randomized-response": ["categories", "features"] }[release] ?? [];
  return { subject: [subject], release: described, more: ["prior", "group", "fpr", "delta"] };
}

/** The request of a state: where it goes, and its parameters. */
export function request(state) {
  const { subject, release } = shown(state);
  const asked = Object.fromEntries([...subject, ...release, "prior", "fpr"].map((name) => [name, state[name]]));
  if (state.delta !== "") asked.delta = state.delta;
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
