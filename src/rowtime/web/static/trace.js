// A trace as a graph: the boxes of the page drawn from the streams to the outputs, with an edge from each row to each row
// that it can have had a part in, and from each bound to the one that followed from it.
"use strict";

const WIDTH = 196, ROW = 38, HEAD = 42, PAD = 8, GAP = 5, BETWEEN = 44, APART = 16, LETTERS = 29;

// What a box shows: its rows, "and n more", and its bound.
function boxOf(section, column) {
  const nodes = [];
  for (const row of section.querySelectorAll("tr[data-id]")) {
    const cells = [...row.cells], heads = [...section.querySelectorAll("th")].map((head) => head.textContent);
    const values = cells.slice(3).map((cell, n) => `${heads[n + 3]} = ${cell.textContent}`).join(", ");
    const kind = cells[1].textContent, first = `${kind === "row" ? "" : `${kind} `}${cells[2].textContent}`;
    nodes.push({ ids: [row.dataset.id], of: row.dataset.of.split(" ").filter(Boolean), texts: [first, values], row, kind });
  }
  const more = section.querySelector("[data-more]");
  if (more) nodes.push({ ids: more.dataset.more.split(" "), of: [], texts: [more.textContent, ""], row: more, kind: "more" });
  for (const bound of section.querySelectorAll("[data-bound]")) {
    const of = JSON.parse(section.dataset.reads).map((name) => `bound of ${name}`);
    nodes.push({ ids: [`bound of ${section.dataset.name}`], of, texts: ["bound", bound.dataset.bound], row: bound, kind: "bound" });
  }
  const [name, kind] = [section.dataset.name, section.dataset.kind];
  return { name, kind, nodes, column, height: HEAD + nodes.length * (ROW + GAP) + PAD };
}

// The columns from left to right, each box beside those that it reads, as near as it goes.
function placed(boxes, columns) {
  const by = new Map();
  for (const box of boxes) for (const node of box.nodes) for (const id of node.ids) by.set(id, { box, node });
  const tallest = Math.max(...columns.map((found) => found.reduce((sum, box) => sum + box.height + APART, 0)));
  for (const found of [...columns].reverse()) {
    for (const box of found) {
      const above = boxes.filter((other) => other.y !== undefined && other.nodes.some((node) => node.of.some((id) => by.get(id)?.box === box)));
      box.wish = above.length ? above.reduce((sum, other) => sum + other.y + other.height / 2, 0) / above.length : tallest / 2;
    }
    found.sort((one, other) => one.wish - other.wish);
    let y = (tallest - found.reduce((sum, box) => sum + box.height + APART, 0)) / 2 + APART;
    for (const box of found) {
      box.x = PAD + box.column * (WIDTH + BETWEEN);
      box.y = y;
      y += box.height + APART;
      box.nodes.forEach((node, n) => { node.y = box.y + HEAD + n * (ROW + GAP); });
    }
  }
  return { by, tallest };
}

// An edge to the next column is a curve; one that goes further passes below the boxes between.
function way(from, to, lane) {
  const a = { x: from.box.x + WIDTH, y: from.node.y + ROW / 2 }, b = { x: to.box.x - 7, y: to.node.y + ROW / 2 };
  const bend = BETWEEN / 2;
  if (lane === null) return `M${a.x},${a.y}C${a.x + bend},${a.y} ${b.x - bend},${b.y} ${b.x},${b.y}`;
  const [left, right] = [a.x + BETWEEN, b.x - BETWEEN + 7];
  return `M${a.x},${a.y}C${a.x + bend},${a.y} ${left - bend},${lane} ${left},${lane}L${right},${lane}C${right + bend},${lane} ${b.x - bend},${b.y} ${b.x},${b.y}`;
}

function drawBox(svg, box) {
  const group = make("g", { class: "traced" });
  group.append(make("rect", { x: box.x, y: box.y, width: WIDTH, height: box.height, rx: 5 }));
  group.append(make("title", {}, `${box.name} (${box.kind})`));
  group.append(make("text", { x: box.x + PAD, y: box.y + 18 }, short(box.name, LETTERS - 4)));
  group.append(make("text", { class: "kind", x: box.x + PAD, y: box.y + 33 }, box.kind));
  svg.append(group);
}

function drawNode(svg, box, node) {
  const group = make("g", { class: `node item ${node.kind === "bound" ? "clock" : ""}`, tabindex: 0, role: "button", "aria-label": `${box.name}: ${node.texts.join(", ")}` });
  group.dataset.ids = node.ids.join(" ");
  group.append(make("rect", { x: box.x + PAD, y: node.y, width: WIDTH - 2 * PAD, height: ROW, rx: 4 }));
  group.append(make("title", {}, node.texts.filter(Boolean).join("\n")));
  node.texts.forEach((text, n) => group.append(make("text", { class: n ? "" : "kind", x: box.x + 2 * PAD, y: node.y + 15 + 16 * n }, short(text, LETTERS - 4 * n))));
  node.element = group;
  svg.append(group);
}

// What a node is made of, or what it had a part in, all the way.
function reached(start, edges, from, to) {
  const found = new Set([start]), left = [start];
  while (left.length) {
    const node = left.pop();
    for (const edge of edges) if (edge[from].node === node && !found.has(edge[to].node)) { found.add(edge[to].node); left.push(edge[to].node); }
  }
  return found;
}

function lit(canvas, node, edges) {
  const down = node ? reached(node, edges, "to", "from") : new Set(), up = node ? reached(node, edges, "from", "to") : new Set();
  canvas.classList.toggle("chosen", Boolean(node));
  for (const edge of edges) {
    const on = (down.has(edge.from.node) && down.has(edge.to.node)) || (up.has(edge.from.node) && up.has(edge.to.node));
    edge.element.classList.toggle("on", on);
    for (const end of [edge.from, edge.to]) end.node.element.classList.toggle("on", down.has(end.node) || up.has(end.node));
  }
}

function show(node) {
  for (const row of document.querySelectorAll(".found .on")) row.classList.remove("on");
  node.row.classList.add("on");
  node.row.scrollIntoView({ block: "center" });
}

function drawTrace() {
  const canvas = document.getElementById("trace-graph");
  if (!canvas || canvas.firstChild) return;
  const levels = [...document.querySelectorAll(".found .level")];
  const columns = levels.map((level, n) => [...level.querySelectorAll(".step")].map((one) => boxOf(one, levels.length - 1 - n))).reverse();
  const boxes = columns.flat(), { by, tallest } = placed(boxes, columns), edges = [];
  for (const box of boxes) for (const node of box.nodes) {
    const ends = new Set(node.of.map((id) => by.get(id)).filter(Boolean));
    for (const from of new Map([...ends].map((end) => [end.node, end])).values()) edges.push({ from, to: { box, node }, bound: node.kind === "bound" });
  }
  let lane = tallest + APART;
  const svg = make("svg", { role: "group" }), defs = make("defs"), marker = make("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 1, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" });
  marker.append(make("path", { class: "arrow", d: "M0,0L8,4L0,8z" }));
  defs.append(marker);
  svg.append(defs);
  for (const edge of edges) {
    const far = edge.to.box.column - edge.from.box.column > 1;
    edge.element = make("path", { class: `edge${edge.bound ? " bounds" : ""}`, d: way(edge.from, edge.to, far ? lane : null), "marker-end": "url(#arrow)" });
    if (far) lane += 6;
    svg.append(edge.element);
  }
  for (const box of boxes) { drawBox(svg, box); for (const node of box.nodes) drawNode(svg, box, node); }
  for (const { node } of by.values()) {
    for (const event of ["mouseenter", "focus"]) node.element.addEventListener(event, () => lit(canvas, node, edges));
    for (const event of ["mouseleave", "blur"]) node.element.addEventListener(event, () => lit(canvas, null, edges));
    node.element.addEventListener("click", () => show(node));
    node.element.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); show(node); } });
  }
  svg.setAttribute("width", 2 * PAD + columns.length * (WIDTH + BETWEEN) - BETWEEN);
  svg.setAttribute("height", lane + PAD);
  canvas.append(svg);
  canvas.scrollLeft = canvas.scrollWidth;
}

drawTrace();
document.body.addEventListener("htmx:afterSwap", drawTrace);
