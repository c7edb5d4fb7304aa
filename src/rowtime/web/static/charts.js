// Charts: any element with data-chart gets the numbers from there, drawn by uPlot.
"use strict";

const COLORS = ["--accent", "--warn", "--early", "--late", "--good", "--quiet", "--bad"];

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(found, width, height) {
  const axis = { stroke: color("--quiet"), grid: { stroke: color("--faint"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width, height, legend: { show: found.series.length > 1 }, cursor: { y: false },
    scales: { x: { time: false }, y: { range: (_u, _low, high) => [0, Math.max(1, (high || 1) * 1.1)] } },
    axes: [{ ...axis, incrs: [1, 2, 5].flatMap((n) => [1, 10, 100, 1e3, 1e4, 1e5].map((m) => n * m)).sort((a, b) => a - b), label: "tick", labelSize: 14, labelFont: "11px system-ui", size: 30 },
      { ...axis, size: 56, values: (_u, splits) => splits.map((value) => value.toLocaleString("en")) }],
    series: [{ label: "tick" }, ...found.series.map((one, n) => ({
      label: one.label, stroke: color(COLORS[n % COLORS.length]), width: 1.5, points: { show: found.x.length < 3 },
      fill: found.series.length === 1 ? color(COLORS[0]) + "22" : undefined,
      paths: found.step ? uPlot.paths.stepped({ align: 1 }) : undefined,
      value: (_u, value) => value == null ? "–" : value.toLocaleString("en"),
    }))],
  };
}

async function chart(element) {
  const answer = await fetch(element.dataset.chart);
  if (!answer.ok) { element.textContent = "No data."; return; }
  const found = await answer.json();
  const mark = answer.headers.get("etag");
  if (element.dataset.mark === mark) return;
  element.dataset.mark = mark;
  element.textContent = "";
  if (!found.x.length) { element.textContent = found.empty || "No data yet."; return; }
  const width = Math.max(240, element.clientWidth), height = Number(element.dataset.height || 140);
  new uPlot(options(found, width, height), [found.x, ...found.series.map((one) => one.values)], element);
}

function charts(root = document) {
  for (const element of root.querySelectorAll("[data-chart]")) chart(element);
}

document.addEventListener("DOMContentLoaded", () => charts());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const element of document.querySelectorAll("[data-chart]")) { delete element.dataset.mark; chart(element); }
});
setInterval(() => { if (!document.hidden) charts(); }, 3000);
