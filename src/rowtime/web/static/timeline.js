// The timeline: lanes over event time, and a scrubber through the journal.
"use strict";

const HEIGHT = 46, TOP = 40, BOTTOM = 26, PLAY = 300;
const lanes = document.getElementById("lanes"), scrubber = document.getElementById("scrubber");
const view = { steps: [], live: true, tick: null, low: null, high: null, at: null, playing: null, mark: "", found: null, busy: false };

function titled(element, text) { element.append(make("title", {}, text)); return element; }

function kindOf(reason) { return reason === "LATE" ? "late" : reason === "EARLY" ? "early" : "other"; }

function drawLane(svg, lane, n, area) {
  const top = TOP + n * HEIGHT, base = top + HEIGHT - 6, x = (place) => area.left + place * area.width;
  svg.append(make("line", { class: "lane-line", x1: 0, x2: area.left + area.width, y1: top + HEIGHT, y2: top + HEIGHT }));
  const name = make("text", { class: `lane-name${lane.behind ? " behind" : ""}`, x: 10, y: top + 19 }, area.short(lane.name));
  svg.append(titled(name, `${lane.name} (${lane.kind})`));
  const away = lane.bound.outside ? `at ${lane.bound.text.slice(0, 16)}` : "";
  const said = [lane.kind, away, lane.held ? `${lane.held.toLocaleString("en")} held` : ""].filter(Boolean).join(" · ");
  svg.append(titled(make("text", { class: lane.held ? "held" : "kind", x: 10, y: top + 35 }, area.short(said)), said));
  const promised = lane.bound.place ?? (lane.bound.beyond ? 1 : 0);
  svg.append(make("rect", { class: "promised", x: x(0), y: top + 1, width: promised * area.width, height: HEIGHT - 2 }));
  const step = area.width / 240;
  for (const [place, share] of lane.density) {
    const height = Math.max(1, share * (HEIGHT - 20));
    svg.append(make("rect", { class: "density", x: x(place), y: base - height, width: Math.max(1, step), height }));
  }
  for (const bar of lane.bars) {
    const width = Math.max(4, (bar.to - bar.from) * area.width - 1);
    const text = `${bar.rows.toLocaleString("en")} ${lane.holds}, ${bar.text}`;
    svg.append(titled(make("rect", { class: "held-bar", x: x(bar.from), y: top + 14, width, height: 10, rx: 2 }), text));
  }
  for (const [place, count] of lane.writers?.places ?? []) {
    const text = `${count.toLocaleString("en")} ${count === 1 ? "writer" : "writers"}`;
    svg.append(titled(make("line", { class: "writer", x1: x(place), x2: x(place), y1: top + 26, y2: base }), text));
  }
  const slow = lane.writers && lane.writers.count > 1 ? lane.writers.slowest[0] : null;
  if (slow && slow.place !== null) {
    svg.append(titled(make("line", { class: "writer slow", x1: x(slow.place), x2: x(slow.place), y1: top + 14, y2: base }), `${slow.name}: ${slow.text}`));
  }
  for (const mark of lane.marks) {
    const at = x(mark.place), path = `M${at - 4} ${top + 3}h8l-4 8z`;
    svg.append(titled(make("path", { class: `mark-${kindOf(mark.reason)}`, d: path }), `${mark.count.toLocaleString("en")} ${mark.reason}${mark.outside ? ", outside of the window" : ""}`));
  }
  if (lane.bound.place !== null) {
    const at = x(lane.bound.place);
    svg.append(titled(make("line", { class: `bound${lane.behind ? " behind" : ""}`, x1: at, x2: at, y1: top + 2, y2: top + HEIGHT - 2 }), `${lane.name} stands at ${lane.bound.text}`));
  }
}

function drawAxes(svg, found, area, height) {
  const x = (place) => area.left + place * area.width;
  svg.append(make("text", { class: "label", x: 10, y: height - 9 }, "event time"));
  svg.append(make("text", { class: "label", x: 10, y: 16 }, "wall clock, tick"));
  for (const mark of found.axis) {
    if (mark.place === null) continue;
    svg.append(make("line", { class: "axis-line", x1: x(mark.place), x2: x(mark.place), y1: TOP, y2: height - BOTTOM + 4 }));
    svg.append(make("text", { class: "label", x: x(mark.place), y: height - 9, "text-anchor": "middle" }, mark.text));
  }
  let written = -100;
  for (const wall of found.walls) {
    const now = wall.tick === found.tick ? " now" : "";
    svg.append(titled(make("line", { class: `tick-mark${now}`, x1: x(wall.place), x2: x(wall.place), y1: wall.text ? TOP - 8 : TOP - 5, y2: TOP }), `tick ${wall.tick}`));
    if (!wall.text || x(wall.place) - written < 64 || x(wall.place) + 50 > area.left + area.width) continue;
    written = x(wall.place);
    svg.append(make("text", { class: "label", x: x(wall.place), y: 16 }, wall.text), make("text", { class: "label", x: x(wall.place), y: 29 }, `#${wall.tick}`));
  }
}

function draw(found) {
  const full = Math.max(320, lanes.clientWidth - 2), left = full < 640 ? 104 : 190, most = full < 640 ? 13 : 25;
  const area = { left, width: full - left - 10, short: (text) => short(text, most) };
  const height = TOP + found.lanes.length * HEIGHT + BOTTOM;
  const svg = make("svg", { width: full, height, viewBox: `0 0 ${full} ${height}`, role: "img", "aria-label": `Lanes after tick ${found.tick}` });
  drawAxes(svg, found, area, height);
  found.lanes.forEach((lane, n) => drawLane(svg, lane, n, area));
  if (found.asked && found.asked.place !== null) {
    const at = area.left + found.asked.place * area.width;
    svg.append(make("line", { class: "asked", x1: at, x2: at, y1: TOP - 6, y2: height - BOTTOM }));
    svg.append(make("text", { class: "label", x: at + 4, y: height - BOTTOM - 3 }, found.asked.text));
  }
  lanes.replaceChildren(svg);
  lanes.dataset.tick = found.tick;
  view.area = area;
}

function tell(found) {
  document.getElementById("tick").textContent = `tick ${found.tick} · ${found.at}`;
  const why = document.getElementById("why");
  if (!found.why) return;
  why.textContent = found.why.lines.join(" ");
  why.classList.toggle("behind", !found.why.out);
}

function query() {
  const asked = new URLSearchParams();
  if (!view.live && view.tick !== null) asked.set("tick", view.tick);
  if (view.low !== null) { asked.set("from", Math.round(view.low)); asked.set("to", Math.round(view.high)); }
  if (view.at !== null) asked.set("at", view.at);
  return asked;
}

async function load() {
  if (view.busy) { view.again = true; return; }
  view.busy = true;
  try {
    const answer = await fetch(`${lanes.dataset.source}?${query()}`);
    const mark = answer.headers.get("etag") + query();
    if (answer.ok && mark !== view.mark) {
      view.mark = mark;
      show(await answer.json());
    } else if (!answer.ok) {
      const why = document.getElementById("why");
      why.textContent = await answer.text();
      why.classList.add("behind");
    }
  } catch { /* the console has ended; the next look tells */ } finally {
    view.busy = false;
  }
  if (view.again) { view.again = false; await load(); }
}

function show(found) {
  view.found = found;
  view.steps = found.steps;
  if (found.tick === null) { lanes.textContent = "No tick yet."; return; }
  view.tick = found.tick;
  scrubber.max = Math.max(0, view.steps.length - 1);
  scrubber.value = nearest(found.tick);
  scrubber.setAttribute("aria-valuetext", `tick ${found.tick}`);
  document.getElementById("live").setAttribute("aria-pressed", String(view.live));
  draw(found);
  tell(found);
}

// The step at a tick, or the last one before it.
function nearest(tick) {
  let found = 0;
  view.steps.forEach((step, n) => { if (step <= tick) found = n; });
  return found;
}

function go(n) {
  const step = Math.max(0, Math.min(view.steps.length - 1, n));
  view.live = false;
  view.tick = view.steps[step];
  return load();
}

function here() { return nearest(view.tick ?? 0); }

function play(on) {
  clearInterval(view.playing);
  view.playing = null;
  const button = document.getElementById("play");
  button.setAttribute("aria-pressed", String(on));
  button.textContent = on ? "Pause" : "Play";
  if (!on) return;
  if (here() >= view.steps.length - 1) go(0);
  view.playing = setInterval(() => {
    if (here() >= view.steps.length - 1) play(false);
    else go(here() + Math.max(1, Math.round(view.steps.length / 120)));
  }, PLAY);
}

function newest() { play(false); view.live = true; return load(); }

function zoom(factor) {
  if (!view.found) return;
  const { from, to } = view.found.window, middle = view.at ?? (from + to) / 2, half = (to - from) / 2 * factor;
  view.low = middle - half;
  view.high = middle + half;
  load();
}

function all() { view.low = view.high = null; load(); }

// A time as people write it: with a date or, of the day that is shown, without one.
function instant(text) {
  const day = view.found ? new Date(view.found.window.to / 1000).toISOString().slice(0, 10) : "1970-01-01";
  const whole = /^\d{1,2}:\d{2}/.test(text) ? `${day}T${text.padStart(5, "0")}` : text.replace(" ", "T");
  const found = Date.parse(whole.endsWith("Z") ? whole : `${whole.length === 10 ? `${whole}T00:00` : whole}Z`);
  return Number.isNaN(found) ? null : found * 1000;
}

function ask(at) { view.at = at; load(); }

document.getElementById("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = document.getElementById("time").value.trim(), at = instant(text);
  if (text && at === null) { document.getElementById("why").textContent = `${text} is no time: write 10:00 or 2026-03-02 10:00.`; return; }
  ask(text ? at : null);
});
lanes.addEventListener("click", (event) => {
  if (!view.area || !view.found) return;
  const share = (event.clientX - lanes.firstChild.getBoundingClientRect().left - view.area.left) / view.area.width;
  if (share < 0 || share > 1) return;
  const { from, to } = view.found.window, at = Math.round((from + share * (to - from)) / 1e6) * 1e6;
  document.getElementById("time").value = new Date(at / 1000).toISOString().slice(0, 19).replace("T", " ");
  ask(at);
});
scrubber.addEventListener("input", () => { play(false); go(Number(scrubber.value)); });
document.getElementById("first").addEventListener("click", () => { play(false); go(0); });
document.getElementById("back").addEventListener("click", () => { play(false); go(here() - 1); });
document.getElementById("on").addEventListener("click", () => { play(false); go(here() + 1); });
document.getElementById("play").addEventListener("click", () => play(!view.playing));
document.getElementById("live").addEventListener("click", newest);
document.getElementById("in").addEventListener("click", () => zoom(0.5));
document.getElementById("out").addEventListener("click", () => zoom(2));
document.getElementById("all").addEventListener("click", all);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range]), button")) return;
  const keys = { ArrowLeft: () => { play(false); go(here() - 1); }, ArrowRight: () => { play(false); go(here() + 1); },
    Home: () => { play(false); go(0); }, End: newest, " ": () => play(!view.playing), "+": () => zoom(0.5), "-": () => zoom(2), 0: all };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});
addEventListener("resize", () => { if (view.found && view.found.tick !== null) draw(view.found); });

const first = new URLSearchParams(location.search).get("tick");
if (first !== null && /^\d+$/.test(first)) { view.live = false; view.tick = Number(first); }
load();
setInterval(() => { if (!document.hidden && view.live && !view.playing) load(); }, 1500);
