// Draws the charts described by data-chart as columns, with a tooltip. The page has the same numbers as a table.

import uPlot from "uplot";
import { onContent } from "./on_content.js";

const HEIGHT = 270;
const heightOf = (element) => Number(element.dataset.height ?? HEIGHT);
const COLOURS = {
  delivered: "var(--chart-delivered)",
  failed: "var(--chart-failed)",
  cancelled: "var(--chart-cancelled)",
  time: "var(--color-primary)",
};
const drawn = new Map();
const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1_000]];

/** Resolves a CSS colour to a value that the canvas understands. */
function css(colour) {
  const probe = document.createElement("i");
  probe.style.color = colour;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const rounded = (number) => new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 }).format(number);

/** Formats milliseconds with a suitable unit. */
function duration(ms) {
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? ["ms", 1];
  return `${rounded(ms / size)} ${unit}`;
}

const whole = (number) => new Intl.NumberFormat().format(number);
const format = (value, unit) => (value == null ? "None" : unit === "ms" ? duration(value) : whole(value));

/** Returns the seconds between two values. */
const step = (chart) => (chart.times[1] ?? chart.times[0] + 3600) - chart.times[0];

/** Stacks the series. The highest is drawn first, so that all stay visible. */
function stacked(series) {
  const sums = series[0].values.map(() => 0);
  return series.map((one) => ({ ...one, drawn: one.values.map((value, at) => (sums[at] += value ?? 0)) })).reverse();
}

/** Possible distances between two ticks of the time axis, in seconds. */
const STEPS = [3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600];
function formatTime(seconds, step) {
  const day = { weekday: "short", day: "numeric", month: "short" };
  const shown = step < 86_400 ? { ...day, hour: "numeric", minute: "2-digit" } : day;
  return new Intl.DateTimeFormat(undefined, shown).format(seconds * 1000);
}

/** Formats a tick as the hour, or as the date at the beginning of a day. */
function formatTick(tick, before) {
  const at = new Date(tick * 1000);
  const midnight = at.getHours() === 0 && at.getMinutes() === 0;
  const hour = { hour: "numeric", minute: "2-digit" };
  const shown = midnight || (before && tick - before >= 86_400) ? { day: "numeric", month: "short" } : hour;
  return new Intl.DateTimeFormat(undefined, shown).format(at);
}

function axes(chart) {
  const look = { stroke: css("var(--soft)"), font: "12px Inter, system-ui, sans-serif", ticks: { show: false } };
  return [
    { ...look, size: 28, space: 64, grid: { show: false }, incrs: STEPS.filter((seconds) => seconds >= step(chart)), values: (_, ticks) => ticks.map((tick, at) => formatTick(tick, ticks[at - 1])) },
    {
      ...look,
      size: 60,
      grid: { stroke: css("var(--line)"), width: 1 },
      values: (_, ticks) => ticks.map((tick) => (chart.unit === "ms" || tick % 1 === 0 ? format(tick, chart.unit) : "")),
    },
  ];
}

/** Shows the values of the column below the pointer. */
function tooltip(chart) {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.hidden = true;
  const line = ({ kind, name, values }, at) => {
    const node = document.createElement("span");
    const swatch = document.createElement("i");
    swatch.className = `swatch swatch-${kind}`;
    const value = document.createElement("b");
    value.textContent = format(values[at], chart.unit);
    node.append(swatch, name, value);
    return node;
  };
  const show = (plot) => {
    const { idx, left } = plot.cursor;
    const empty = idx == null || left < 0 || chart.series.every(({ values }) => !values[idx]);
    tip.hidden = empty;
    if (empty) return;
    const title = document.createElement("strong");
    title.textContent = formatTime(chart.times[idx], step(chart));
    tip.replaceChildren(title, ...chart.series.map((one) => line(one, idx)));
    const right = left > plot.over.clientWidth / 2;
    tip.style.top = "0.5rem";
    tip.style.left = right ? "auto" : `${plot.over.offsetLeft + left + 12}px`;
    tip.style.right = right ? `${plot.root.clientWidth - plot.over.offsetLeft - left + 12}px` : "auto";
  };
  return { hooks: { ready: (plot) => plot.root.append(tip), setCursor: show } };
}

function options(chart, series, width, height) {
  const bars = uPlot.paths.bars({ size: [0.72, 48], radius: 0.12 });
  const columns = series.map((one) => {
    const colour = css(COLOURS[one.kind] ?? "var(--soft)");
    return { label: one.name, fill: colour, stroke: colour, width: 0, paths: bars, points: { show: false } };
  });
  const half = step(chart) / 2;
  return {
    width,
    height,
    series: [{}, ...columns],
    axes: axes(chart),
    scales: { x: { range: (_, from, to) => [from - half, to + half] }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] } },
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
    plugins: [tooltip(chart)],
  };
}

function draw(element) {
  const box = element.firstElementChild;
  const chart = JSON.parse(element.dataset.chart);
  const series = chart.stacked ? stacked(chart.series) : chart.series.map((one) => ({ ...one, drawn: one.values }));
  drawn.get(element)?.plot.destroy();
  const plot = new uPlot(options(chart, series, box.clientWidth, heightOf(element)), [chart.times, ...series.map((one) => one.drawn)], box);
  drawn.set(element, { plot, text: element.dataset.chart });
}

const all = () => document.querySelectorAll("[data-chart]");
const redraw = () => all().forEach(draw);

onContent(() => {
  for (const element of all()) if (drawn.get(element)?.text !== element.dataset.chart) draw(element);
  for (const table of document.querySelectorAll(".data-table:not([data-ready])")) {
    table.open = false;
    table.dataset.ready = "yes";
  }
});
document.addEventListener("themechange", redraw);
document.fonts?.ready.then(redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
addEventListener("resize", () => {
  for (const [element, { plot }] of drawn) {
    if (element.isConnected) plot.setSize({ width: element.firstElementChild.clientWidth, height: heightOf(element) });
    else drawn.delete(element);
  }
});
