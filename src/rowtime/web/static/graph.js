// The graph: dagre lays the operators out from sources to sinks, and this draws them as SVG.
"use strict";

const canvas = document.getElementById("graph"), detail = document.getElementById("detail"), split = document.getElementById("split");
let mark = "", opened = new URLSearchParams(location.search).get("box") || "", drawn = "";

function counted(n) { return n.toLocaleString("en"); }

function labels(edge) {
  const lines = [edge.bound];
  lines.push(edge.rows === null ? "rows not counted" : `${counted(edge.rows)} ${edge.rows === 1 ? "row" : "rows"} lately`);
  if (edge.held) lines.push(`${counted(edge.held)} held`);
  if (edge.who) lines.push(`held by ${short(edge.who, 24)}`);
  else if (edge.writers > 1) lines.push(`${counted(edge.writers)} writers`);
  return lines;
}

// From left to right where that fits, else from top to bottom.
function layout(found) {
  const wide = laid(found, "LR");
  return wide.graph().width <= canvas.clientWidth ? wide : laid(found, "TB");
}

function notes(node) {
  return [node.held ? `${counted(node.held)} held` : "", node.refused ? `${counted(node.refused)} refused` : "", node.left ? `${node.left} to read` : ""].filter(Boolean).join(" · ");
}

function laid(found, rankdir) {
  const graph = new dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir, nodesep: 26, ranksep: 26, edgesep: 18, marginx: 16, marginy: 16 });
  graph.setDefaultEdgeLabel(() => ({}));
  found.nodes.forEach((node, n) => {
    const width = Math.max(84, 20 + 7.4 * Math.max(short(node.name, 28).length, node.kind.length * 0.9, notes(node).length * 0.85));
    graph.setNode(String(n), { width, height: notes(node) ? 58 : 44 });
  });
  const places = new Map(found.nodes.map((node, n) => [node.name, String(n)]));
  found.edges.forEach((edge, n) => {
    const lines = labels(edge), width = 8 + 6 * Math.max(...lines.map((line) => line.length));
    graph.setEdge(places.get(edge.from), places.get(edge.to), { width, height: 14 * lines.length, labelpos: "c" }, String(n));
  });
  dagre.layout(graph);
  return graph;
}

function line(points) {
  return points.map((point, n) => `${n ? "L" : "M"}${point.x.toFixed(1)},${point.y.toFixed(1)}`).join("");
}

function drawEdge(root, place, edge) {
  const holds = edge.holds ? " holds" : "";
  root.append(make("path", { class: `edge${holds}`, d: line(place.points), "marker-end": `url(#arrow${holds ? "-holds" : ""})` }));
  const lines = labels(edge);
  root.append(make("rect", { class: "label-ground", x: place.x - place.width / 2, y: place.y - place.height / 2, width: place.width, height: place.height }));
  lines.forEach((text, n) => {
    const y = place.y - place.height / 2 + 11 + 14 * n;
    root.append(make("text", { class: `label${holds}`, x: place.x, y, "text-anchor": "middle" }, text));
  });
}

function drawNode(root, place, node) {
  const group = make("g", {
    class: `node${node.gate ? " gate" : ""}${node.blame ? " blame" : ""}`, tabindex: 0, role: "button",
    "aria-pressed": String(node.name === opened), "aria-label": `${node.name}, ${node.kind}`,
    transform: `translate(${place.x - place.width / 2},${place.y - place.height / 2})`,
  });
  group.dataset.name = node.name;
  group.append(make("rect", { width: place.width, height: place.height, rx: 5 }));
  group.append(make("title", {}, `${node.name} (${node.kind})`));
  group.append(make("text", { x: 10, y: 18 }, short(node.name, 28)));
  group.append(make("text", { class: "kind", x: 10, y: 34 }, node.kind));
  if (notes(node)) group.append(make("text", { class: node.held ? "held" : node.refused ? "refused" : "kind", x: 10, y: 50 }, notes(node)));
  root.append(group);
}

function draw(found) {
  const focused = document.activeElement?.dataset?.name;
  const graph = layout(found), size = graph.graph();
  const svg = make("svg", { width: Math.ceil(size.width || 1), height: Math.ceil(size.height || 1), role: "group" });
  const defs = make("defs");
  for (const kind of ["", "-holds"]) {
    const marker = make("marker", { id: `arrow${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" });
    marker.append(make("path", { class: `arrow${kind ? " holds" : ""}`, d: "M0,0L8,4L0,8z" }));
    defs.append(marker);
  }
  svg.append(defs);
  for (const edge of graph.edges()) drawEdge(svg, graph.edge(edge), found.edges[Number(edge.name)]);
  found.nodes.forEach((node, n) => drawNode(svg, graph.node(String(n)), node));
  canvas.replaceChildren(svg);
  if (focused) svg.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus();
  const blame = document.getElementById("blame");
  blame.textContent = found.blame || (found.nodes.length ? "Nothing is held." : "There is no plan yet.");
  blame.classList.toggle("behind", Boolean(found.blame));
  const reasons = new Set(found.edges.map((edge) => edge.uncounted).filter(Boolean));
  document.getElementById("uncounted").textContent = reasons.size ? `Rows not counted: ${[...reasons].join(" ")}` : "";
}

async function refresh() {
  const answer = await fetch(canvas.dataset.source).catch(() => null);
  if (!answer || !answer.ok || answer.headers.get("etag") === mark) return;
  mark = answer.headers.get("etag");
  draw(await answer.json());
}

async function open(name) {
  opened = name;
  history.replaceState(null, "", name ? `?box=${encodeURIComponent(name)}` : location.pathname);
  for (const node of canvas.querySelectorAll(".node")) node.setAttribute("aria-pressed", String(node.dataset.name === name));
  detail.hidden = !name;
  split.classList.toggle("open", Boolean(name));
  if (!name) { drawn = ""; return; }
  const answer = await fetch(`${canvas.dataset.box}?box=${encodeURIComponent(name)}`);
  const text = await answer.text();
  if (text === drawn || opened !== name) return;
  drawn = text;
  // The server has escaped every value; nothing in it can run (Content-Security-Policy).
  detail.innerHTML = text;
  charts(detail);
  const script = detail.querySelector(".script"), line = script.querySelector(".l.on");
  detail.scrollTop = 0;
  if (line) script.scrollTop = line.offsetTop - script.offsetTop - 3 * line.offsetHeight;
}

canvas.addEventListener("click", (event) => {
  const node = event.target.closest(".node");
  if (node) open(node.dataset.name === opened ? "" : node.dataset.name);
});
canvas.addEventListener("keydown", (event) => {
  const node = event.target.closest(".node");
  if (node && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); open(node.dataset.name); }
});
detail.addEventListener("click", (event) => { if (event.target.closest("[data-close]")) open(""); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && opened) open(""); });

refresh().then(() => { if (opened) open(opened); });
setInterval(() => { if (!document.hidden) refresh(); }, 2000);
