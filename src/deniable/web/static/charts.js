// Two charts, drawn by uPlot in the page's own colours.

import uPlot from "./vendor/uPlot.esm.js";

const HEIGHT = 230;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const asPercent = (digits = 0) => (_, values) => values.map((value) => `${(value * 100).toFixed(digits)} %`);

function axes(bottom, left) {
  const common = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui", labelFont: "12px system-ui" };
  return [
    { ...common, label: bottom, labelSize: 22, size: 28, values: asPercent(), space: 48 },
    { ...common, label: left, labelSize: 22, size: 46, values: asPercent(), space: 34 },
  ];
}

/** The charts of a kind, so that those of two plans have the same axes. */
const kin = new Map();

/** A chart that fills its place, follows its width and is drawn anew for new data. */
class Chart {
  redraws = false; // whether axes follow the data, so that it is drawn anew
  line = null; // where a vertical line stands, and its text

  constructor(place, options, kind) {
    this.place = place;
    this.options = options;
    this.kind = kind;
    if (!kin.has(kind)) kin.set(kind, new Set());
    kin.get(kind).add(this);
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(place);
  }

  resize() {
    const width = this.place.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  show(data, words) {
    this.data = data;
    this.tallest = Math.max(...data.slice(1).flat().filter((value) => value !== null));
    this.place.setAttribute("aria-label", words);
    if (!this.plot || this.redraws) this.draw();
    for (const other of kin.get(this.kind)) other.plot?.setData(other.data);
  }

  /** A little more than the smallest and largest value that any chart of this kind shows. */
  get ends() {
    const all = [...kin.get(this.kind)].flatMap((chart) => (chart.data ?? []).slice(1).flat()).filter((value) => value !== null);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const more = 0.06 * (high - low || 1);
    return [low - more, high + more];
  }

  /** The largest value that any chart of this kind shows. */
  get shared() {
    return Math.max(...[...kin.get(this.kind)].map((chart) => chart.tallest ?? 0));
  }

  draw() {
    this.plot?.destroy();
    this.place.replaceChildren();
    const size = { width: Math.max(this.place.clientWidth, 200), height: HEIGHT };
    this.plot = new uPlot({ ...size, pxAlign: 0, cursor: { y: false, points: { show: false } }, ...this.options(this) }, this.data, this.place);
  }

  recolour() {
    if (this.plot) this.draw();
  }

  destroy() {
    this.observer.disconnect();
    kin.get(this.kind).delete(this);
    this.plot?.destroy();
    for (const other of kin.get(this.kind)) other.plot?.setData(other.data);
  }
}

/** A share in per cent; 0 % and 100 % only where it is none or all. */
function shareOf(value) {
  if (value === null || value === undefined) return "";
  if (value > 0 && value < 0.0005) return "under 0.05 %";
  if (value > 0.9995 && value < 1) return "over 99.95 %";
  return `${(value * 100).toFixed(1)} %`;
}

export function rocChart(place) {
  return new Chart(place, () => ({
    scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1] } },
    axes: axes("others accused (FPR)", "members found (TPR)"),
    series: [
      { label: "FPR", value: (_, value) => shareOf(value) },
      { label: "at most", stroke: colour("accent"), width: 2.5, fill: colour("accent-soft"), points: { show: false }, value: (_, value) => shareOf(value) },
      { label: "blind", stroke: colour("soft"), dash: [4, 4], width: 1.2, points: { show: false }, value: (_, value) => shareOf(value) },
    ],
  }), "roc");
}

/** So much higher than the highest bar, for the line's name. */
const HEADROOM = 1.2;

export function beliefChart(place) {
  const bars = uPlot.paths.bars({ size: [0.92, 100], align: 0 });
  return new Chart(place, (chart) => ({
    scales: { x: { time: false, range: [0, 1] }, y: { range: () => [0, Math.max(HEADROOM * chart.shared, 0.05)] } },
    hooks: { draw: [(plot) => drawLine(plot, chart.line)] },
    axes: axes("belief that the person is in", "share of releases"),
    series: [
      { label: "belief", value: (_, value) => shareOf(value) },
      { label: "person in", stroke: colour("accent"), fill: colour("accent-bar"), width: 1, paths: bars, points: { show: false }, value: (_, value) => shareOf(value) },
      { label: "person not in", stroke: colour("other"), fill: colour("other-bar"), width: 1, paths: bars, points: { show: false }, value: (_, value) => shareOf(value) },
    ],
  }), "beliefs");
}

/** What was promised, or what holds at most, as a vertical line with its name. */
function drawLine(plot, line) {
  if (line === null) return;
  const { ctx, bbox } = plot;
  const x = plot.valToPos(line.at, "x", true);
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("warn");
  ctx.lineWidth = 1.6 * devicePixelRatio;
  ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.font = `${12 * devicePixelRatio}px system-ui`;
  const right = x > bbox.left + bbox.width / 2;
  ctx.textAlign = right ? "right" : "left";
  ctx.fillText(line.text, x + (right ? -5 : 5) * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
  ctx.restore();
}

const asValue = (percent) => (value) => (value === null || value === undefined ? "" : percent ? shareOf(value) : `${Number(value.toPrecision(3))}`);

/** A frontier: how good the model is at every bound of the promise, with where one more training lies. */
export function costsChart(place) {
  return new Chart(place, (chart) => {
    const told = (value) => asValue(chart.costs?.percent)(value);
    const bound = (value) => asValue(chart.costs?.share)(value);
    const wide = { points: { show: false }, value: (_, value) => told(value) };
    const [bottom, left] = axes(chart.costs?.share ? "promise: at most" : "promise: epsilon at most", chart.costs?.measure.toLowerCase() ?? "");
    return {
      scales: { x: { time: false, distr: chart.costs?.share ? 1 : 3, range: () => spread(chart) }, y: { range: () => chart.ends } },
      axes: [
        { ...bottom, values: (_, values) => values.map((value) => (value === null ? "" : chart.costs?.share ? `${Math.round(value * 100)} %` : `${value}`)) },
        { ...left, values: (_, values) => values.map((value) => (chart.costs?.percent ? `${Number((value * 100).toPrecision(4))} %` : `${value}`)) },
      ],
      hooks: { draw: [(plot) => drawLine(plot, chart.line)] },
      bands: [{ series: [2, 3], fill: colour("accent-soft") }],
      series: [
        { label: "promise", value: (_, value) => bound(value) },
        { label: "mean", stroke: colour("accent"), width: 2.5, ...wide, points: { show: true, size: 6, fill: colour("accent") } },
        { label: "one more training, up to", stroke: colour("accent-bar"), width: 1, ...wide },
        { label: "from", stroke: colour("accent-bar"), width: 1, ...wide },
        { label: "no promise", stroke: colour("other"), dash: [6, 4], width: 1.4, ...wide },
        { label: "no model", stroke: colour("soft"), dash: [2, 4], width: 1.4, ...wide },
      ],
    };
  }, "costs");
}

/** The promises of all charts of this kind and the chosen one, so that two plans have the same axes. */
function spread(chart) {
  const alike = [...kin.get("costs")].filter(({ costs }) => costs?.promise === chart.costs?.promise);
  const at = alike.flatMap(({ data, line }) => [...(data?.[0] ?? []), line?.at]).filter((value) => Number.isFinite(value) && value > 0);
  if (chart.costs?.share) return [Math.max(0, Math.min(...at) - 0.02), Math.min(1, Math.max(...at) + 0.02)];
  return [Math.min(...at) / 1.2, Math.max(...at) * 1.2];
}

export function costsData({ levels, none, without_model: base }) {
  const known = levels.filter(({ bound }) => bound !== null).sort((a, b) => a.bound - b.bound);
  const row = (name) => known.map((level) => level[name]);
  return [row("bound"), row("mean"), row("next_high"), row("next_low"), known.map(() => none.mean), known.map(() => base)];
}

/** The curve at even rates, so that the pointer reads it everywhere. */
export function rocData({ fpr, tpr }) {
  const at = [...new Set([...fpr, ...Array.from({ length: 101 }, (_, i) => i / 100)])].sort((a, b) => a - b);
  let j = 0;
  const heights = at.map((x) => {
    while (j < fpr.length - 2 && fpr[j + 1] < x) j += 1;
    const width = fpr[j + 1] - fpr[j];
    return width > 0 ? tpr[j] + ((tpr[j + 1] - tpr[j]) * Math.max(0, x - fpr[j])) / width : tpr[j + 1];
  });
  return [at, heights, at];
}

export function beliefData({ edges, inside, outside }) {
  return [edges.slice(1).map((edge, i) => (edge + edges[i]) / 2), inside, outside];
}
