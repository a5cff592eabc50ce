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

/** A chart that fills its place, follows its width and is drawn anew for new data. */
class Chart {
  constructor(place, options) {
    this.place = place;
    this.options = options;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(place);
  }

  resize() {
    const width = this.place.clientWidth;
    if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  show(data, words) {
    this.data = data;
    this.place.setAttribute("aria-label", words);
    if (this.plot) this.plot.setData(data);
    else this.draw();
  }

  draw() {
    this.plot?.destroy();
    this.place.replaceChildren();
    const size = { width: Math.max(this.place.clientWidth, 200), height: HEIGHT };
    this.plot = new uPlot({ ...size, cursor: { y: false, points: { show: false } }, ...this.options() }, this.data, this.place);
  }

  recolour() {
    if (this.plot) this.draw();
  }

  destroy() {
    this.observer.disconnect();
    this.plot?.destroy();
  }
}

const shareOf = (value) => (value === null || value === undefined ? "–" : `${(value * 100).toFixed(1)} %`);

export function rocChart(place) {
  return new Chart(place, () => ({
    scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1] } },
    axes: axes("others accused (FPR)", "members found (TPR)"),
    series: [
      { label: "FPR", value: (_, value) => shareOf(value) },
      { label: "at most", stroke: colour("accent"), width: 2.5, fill: colour("accent-soft"), points: { show: false }, value: (_, value) => shareOf(value) },
      { label: "blind", stroke: colour("soft"), dash: [4, 4], width: 1.2, points: { show: false }, value: (_, value) => shareOf(value) },
    ],
  }));
}

export function beliefChart(place) {
  const bars = uPlot.paths.bars({ size: [0.92, 100], align: 0 });
  return new Chart(place, () => ({
    scales: { x: { time: false, range: [0, 1] }, y: { range: (_, low, high) => [0, Math.max(high, 0.05)] } },
    axes: axes("belief that the person is in", "share of releases"),
    series: [
      { label: "belief", value: (_, value) => shareOf(value) },
      { label: "person in", stroke: colour("accent"), fill: colour("accent-bar"), width: 1, paths: bars, points: { show: false }, value: (_, value) => shareOf(value) },
      { label: "person not in", stroke: colour("other"), fill: colour("other-bar"), width: 1, paths: bars, points: { show: false }, value: (_, value) => shareOf(value) },
    ],
  }));
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
