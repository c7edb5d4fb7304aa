"""Draw the pictures of the docs from runs of rowtime: what is drawn is what came out.

``runs`` plays small transcripts, an item a tick, and keeps what came in, what went out and after which item, what was
refused, and how far the bound of the output was. ``docs/images/runs.json`` holds that, and ``drawn`` makes the SVG
files from it.

    python scripts/pictures.py             # runs, and draws (make pictures)
    python scripts/pictures.py --draw      # draws what the last run has found
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import Transcript

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs/images"
RUNS: Final = IMAGES / "runs.json"
LAYERS: Final = IMAGES / "packages.svg"
WAY: Final = IMAGES / "way.svg"
DAY: Final = "2024-01-01 "
BASE: Final = datetime(2024, 1, 1, 10, tzinfo=UTC)
Run = Mapping[str, Any]
CUTS: Final = {"one item per tick": (1, 2, 3, 4, 5, 6, 7), "three ticks": (2, 5, 7), "one tick": (7,)}
"""The ends of ticks in the picture of invariance, over the items of the T-sort."""

CASES: Final[Mapping[str, str]] = {
    "tsort": """
title: a T-sort within ten seconds
sql: |
  CREATE STREAM clicks (page STRING, at TIMESTAMP);
  SELECT STREAM at AS ROWTIME, page FROM clicks ORDER BY at WITHIN INTERVAL '10' SECOND;
input:
  - row: {stream: clicks, rowtime: '2024-01-01 12:00:00', page: a, at: '2024-01-01 10:00:04'}
  - row: {stream: clicks, rowtime: '2024-01-01 12:00:01', page: b, at: '2024-01-01 10:00:12'}
  - row: {stream: clicks, rowtime: '2024-01-01 12:00:02', page: c, at: '2024-01-01 10:00:08'}
  - row: {stream: clicks, rowtime: '2024-01-01 12:00:03', page: d, at: '2024-01-01 10:00:20'}
  - row: {stream: clicks, rowtime: '2024-01-01 12:00:04', page: e, at: '2024-01-01 10:00:06'}
  - row: {stream: clicks, rowtime: '2024-01-01 12:00:05', page: f, at: '2024-01-01 10:00:15'}
  - row: {stream: clicks, rowtime: '2024-01-01 12:00:06', page: g, at: '2024-01-01 10:00:31'}
""",
    "merge": """
title: a merge of two writers
sql: |
  CREATE STREAM readings (sensor STRING);
  SELECT STREAM sensor FROM readings;
writers: {readings: [north, south]}
input:
  - row: {stream: readings, writer: north, rowtime: '2024-01-01 10:00:04', sensor: n1}
  - row: {stream: readings, writer: north, rowtime: '2024-01-01 10:00:10', sensor: n2}
  - row: {stream: readings, writer: south, rowtime: '2024-01-01 10:00:07', sensor: s1}
  - row: {stream: readings, writer: north, rowtime: '2024-01-01 10:00:22', sensor: n3}
  - row: {stream: readings, writer: south, rowtime: '2024-01-01 10:00:13', sensor: s2}
  - row: {stream: readings, writer: south, rowtime: '2024-01-01 10:00:28', sensor: s3}
""",
    "holding": """
title: a silent writer holds the groups of a minute
sql: |
  CREATE STREAM readings (sensor STRING);
  SELECT STREAM COUNT(*) AS n FROM readings AS r GROUP BY FLOOR(r.ROWTIME TO MINUTE);
writers: {readings: [north, south]}
input:
  - row: {stream: readings, writer: north, rowtime: '2024-01-01 10:00:10', sensor: n1}
  - row: {stream: readings, writer: south, rowtime: '2024-01-01 10:00:20', sensor: s1}
  - row: {stream: readings, writer: north, rowtime: '2024-01-01 10:00:50', sensor: n2}
  - row: {stream: readings, writer: north, rowtime: '2024-01-01 10:01:20', sensor: n3}
  - row: {stream: readings, writer: north, rowtime: '2024-01-01 10:02:10', sensor: n4}
  - bound: {stream: readings, writer: south, at: '2024-01-01 10:02:00'}
""",
    "panes": """
title: panes of a minute that take late rows for two minutes
sql: |
  CREATE STREAM landings (airport STRING, at TIMESTAMP)
    EVENT TIME (at, MINIMUM GAP INTERVAL '0' SECOND);
  SELECT STREAM PANE_START AS start, PANE_TIMING AS timing, COUNT(*) AS n FROM landings
  GROUP BY PANES(at, DURATION INTERVAL '1' MINUTE, DISCARD AGE INTERVAL '2' MINUTE);
input:
  - row: {stream: landings, rowtime: '2024-01-01 12:00:00', airport: a, at: '2024-01-01 10:00:15'}
  - row: {stream: landings, rowtime: '2024-01-01 12:00:01', airport: b, at: '2024-01-01 10:00:40'}
  - row: {stream: landings, rowtime: '2024-01-01 12:00:02', airport: c, at: '2024-01-01 10:01:10'}
  - row: {stream: landings, rowtime: '2024-01-01 12:00:03', airport: d, at: '2024-01-01 10:00:50'}
  - row: {stream: landings, rowtime: '2024-01-01 12:00:04', airport: e, at: '2024-01-01 10:01:45'}
  - row: {stream: landings, rowtime: '2024-01-01 12:00:05', airport: f, at: '2024-01-01 10:03:20'}
  - row: {stream: landings, rowtime: '2024-01-01 12:00:06', airport: g, at: '2024-01-01 10:00:55'}
""",
    "lifetimes": """
title: how many aircraft are in the air
sql: |
  CREATE STREAM flights (departure TIMESTAMP, arrival TIMESTAMP, name STRING)
    EVENT SHAPE INTERVAL (departure, arrival);
  SELECT STREAM COUNT(*) AS n FROM flights GROUP BY SNAPSHOT() EMIT INTERVALS (start, stop);
input:
  - row: {stream: flights, departure: '2024-01-01 10:00:05', arrival: '2024-01-01 10:00:25', name: A}
  - row: {stream: flights, departure: '2024-01-01 10:00:15', arrival: '2024-01-01 10:00:40', name: B}
  - row: {stream: flights, departure: '2024-01-01 10:00:10', arrival: '2024-01-01 10:00:20', name: C}
  - bound: {stream: flights, at: '2024-01-01 10:00:22'}
  - row: {stream: flights, departure: '2024-01-01 10:00:30', arrival: '2024-01-01 10:00:50', name: D}
  - bound: {stream: flights, at: '2024-01-01 10:00:55'}
""",
}


# -- runs -----------------------------------------------------------------------------


def _case(text: str) -> Transcript:
    from rowtime.testing.transcripts import load  # noqa: PLC0415 - drawing needs no Spark

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path)


def run(spark: SparkSession, text: str) -> Run:
    """Play a transcript, one item per tick; times are seconds since 10:00, or nothing if there is none."""
    from rowtime.testing.runner import play  # noqa: PLC0415 - drawing needs no Spark

    case = _case(text)
    numbers = [item.number for item in case.items]
    outcome = play(spark, case, numbers)
    held = [play(spark, case, numbers[:number]).held for number in numbers]
    items = [
        {"item": item.number, "writer": item.writer, "bound": _seconds(item.at)}
        | {name: _plain(value) for name, value in (item.values or {}).items()}
        for item in case.items
    ]
    rows = [
        {"after": numbers[tick]} | {name: _plain(value) for name, value in row.items()} for tick, row in outcome.rows
    ]
    refused = [{"item": row["position"], "reason": row["reason"]} for row in outcome.refused]
    clocks = [_seconds(clock) for clock in outcome.clocks]
    return {"sql": case.sql, "items": items, "rows": rows, "refused": refused, "clocks": clocks, "held": held}


def cut(spark: SparkSession) -> Run:
    """Play the T-sort with several cuts; keep which rows each tick gave, and what was refused."""
    from rowtime.testing.runner import play  # noqa: PLC0415 - drawing needs no Spark

    case, found = _case(CASES["tsort"]), {}
    for name, ends in CUTS.items():
        outcome = play(spark, case, ends)
        rows = [{"after": ends[tick], "page": row["page"]} for tick, row in outcome.rows]
        found[name] = {"ends": [*ends], "rows": rows, "refused": [row["page"] for row in outcome.refused]}
    items = [(item.values or {})["page"] for item in case.items]
    return {"items": items, "cuts": found}


def runs(spark: SparkSession) -> dict[str, Run]:
    """Return every run, by the name of its picture."""
    return {**{name: run(spark, text) for name, text in CASES.items()}, "invariance": cut(spark)}


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(DAY):
        value = datetime.fromisoformat(value).replace(tzinfo=UTC)
    return (value - BASE).total_seconds() if isinstance(value, datetime) else value


def _seconds(micros: int | None) -> float | None:
    """Return seconds since 10:00 of µs UTC; nothing for a bound at an end of time."""
    if micros is None:
        return None
    day = timedelta(days=1) / timedelta(microseconds=1)
    since = micros - BASE.timestamp() * 1_000_000
    return since / 1_000_000 if abs(since) < day else None


# -- drawing --------------------------------------------------------------------------

STYLE: Final = """
  .paper { fill: #ffffff; } text { font: 12px sans-serif; fill: #1b1f24; } .small { font-size: 11px; }
  .quiet { fill: #57606a; } .axis { stroke: #8c959f; } .grid { stroke: #d0d7de; } .wait { stroke: #8c959f; }
  .north { fill: #0969da; stroke: #0969da; } .south { fill: #bc4c00; stroke: #bc4c00; } .out { fill: none; }
  .late { stroke: #cf222e; } .bad { fill: #cf222e; } .bound { stroke: #1a7f37; fill: none; } .past { fill: #1a7f37; }
  .pane { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #161b22; } text { fill: #e6edf3; } .quiet { fill: #9198a1; } .axis { stroke: #6e7681; }
    .grid { stroke: #30363d; } .wait { stroke: #6e7681; } .north { fill: #58a6ff; stroke: #58a6ff; }
    .south { fill: #f0883e; stroke: #f0883e; } .late { stroke: #ff7b72; } .bad { fill: #ff7b72; }
    .bound { stroke: #3fb950; } .past { fill: #3fb950; } .pane { fill: #58a6ff; }
  }
"""
MINUTE: Final = 60
WIDTH: Final = 760
LEFT, RIGHT, TOP, STEP = 170, 560, 58, 34
ASIDE: Final = RIGHT + 48
LABEL: Final = 56  # the width of a time, with a space


@dataclass
class Canvas:
    """An SVG file in progress; times run from left to right, items from top to bottom."""

    title: str
    first: float
    last: float
    tick: float
    items: int
    parts: list[str] = field(default_factory=list)

    @property
    def height(self) -> int:
        """Return the height, with a line for the legend."""
        return TOP + STEP * (self.items + 1) + 26

    def x(self, seconds: float) -> float:
        """Return the position of a time."""
        return round(LEFT + (RIGHT - LEFT) * (seconds - self.first) / (self.last - self.first), 1)

    def y(self, item: float) -> float:
        """Return the position of an item."""
        return round(TOP + STEP * item, 1)

    def text(self, x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> None:
        """Write words."""
        self.parts.append(f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>')

    def line(self, points: Sequence[tuple[float, float]], kind: str, more: str = "") -> None:
        """Draw a line through points."""
        there = " ".join(f"{x},{y}" for x, y in points)
        self.parts.append(f'<polyline points="{there}" class="{kind}" fill="none" {more}/>')

    def box(self, corner: tuple[float, float], size: tuple[float, float], kind: str, more: str = "") -> None:
        """Draw a rectangle."""
        self.parts.append(
            f'<rect x="{corner[0]}" y="{corner[1]}" width="{round(size[0], 1)}" height="{round(size[1], 1)}" '
            f'class="{kind}" {more}/>'
        )

    def dot(self, x: float, y: float, kind: str) -> None:
        """Draw a row."""
        self.parts.append(f'<circle cx="{x}" cy="{y}" r="5" class="{kind}" stroke-width="2"/>')

    def cross(self, x: float, y: float) -> None:
        """Draw a refused row."""
        self.line([(x - 5, y - 5), (x + 5, y + 5)], "late", 'stroke-width="2.5"')
        self.line([(x - 5, y + 5), (x + 5, y - 5)], "late", 'stroke-width="2.5"')

    def axes(self, across: str) -> None:
        """Write the times above, a line a time, and the title."""
        self.text(16, 22, self.title)
        at, free = self.first, 0.0
        while at <= self.last:
            self.line([(self.x(at), TOP + 8), (self.x(at), self.y(self.items) + 14)], "grid")
            if self.x(at) >= free:  # a label that would touch the one before it is left out
                self.text(self.x(at), TOP - 2, clock(at), "small quiet", "middle")
                free = self.x(at) + LABEL
            at += self.tick
        self.text(ASIDE, TOP - 2, across, "small quiet")

    def legend(self, words: str) -> None:
        """Explain the signs below the picture."""
        self.text(16, self.height - 12, words, "small quiet")

    def svg(self) -> str:
        """Return the file."""
        size = f'width="{WIDTH}" height="{self.height}" viewBox="0 0 {WIDTH} {self.height}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>{escape(self.title)}</title>'
        paper = f'<rect width="{WIDTH}" height="{self.height}" rx="6" class="paper"/>'
        return "\n".join([head, f"<style>{STYLE}</style>", paper, *self.parts, "</svg>", ""])


def clock(seconds: float) -> str:
    """Return a time as people read it."""
    return f"{BASE + timedelta(seconds=seconds):%H:%M:%S}"


def bound_line(canvas: Canvas, clocks: Sequence[float | None], label: str) -> None:
    """Draw how far the bound of the output was after each item."""
    points: list[tuple[float, float]] = []
    for item, at in enumerate(clocks, start=1):
        if at is None:
            continue
        x = canvas.x(max(canvas.first, min(at, canvas.last)))
        points += [(points[-1][0] if points else canvas.x(canvas.first), canvas.y(item)), (x, canvas.y(item))]
    if points:
        points.append((points[-1][0], canvas.y(len(clocks)) + 14))
        canvas.line(points, "bound", 'stroke-width="2"')
        canvas.text(points[-1][0], points[-1][1] + 13, label, "small past", "middle")


def came(run: Run, time: str, name: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the rows of a run that have a time, and the words for each item."""
    for item in run["items"]:
        who = f" {item['writer']}" if len({one["writer"] for one in run["items"]}) > 1 else ""
        said = f"{item['item']}{who}: "
        said += f"bound {clock(item['bound'])}" if item["bound"] is not None else f"{item[name]} {clock(item[time])}"
        yield item, said


def rows_over_time(canvas: Canvas, run: Run, time: str, name: str) -> None:
    """Draw rows at their times as they came, and at the item after which each went out."""
    bad = {row["item"]: row["reason"] for row in run["refused"]}
    out = {row[name]: row["after"] for row in run["rows"] if name in row}
    for item, words in came(run, time, name):
        y = canvas.y(item["item"])
        canvas.text(16, y + 4, words, "small")
        kind = item["writer"] if item["writer"] in ("north", "south") else "north"
        if item["bound"] is not None:
            continue
        x = canvas.x(item[time])
        if item["item"] in bad:
            canvas.cross(x, y)
            canvas.text(x + 10, y + 4, bad[item["item"]], "small bad")
            continue
        if (after := out.get(item[name])) is not None:
            canvas.line([(x, y), (x, canvas.y(after))], "wait", 'stroke-dasharray="3 3"')
            canvas.dot(x, canvas.y(after), f"{kind} out")
        canvas.dot(x, y, kind)


def went_out(canvas: Canvas, run: Run, words: Callable[[Mapping[str, Any]], str]) -> None:
    """Write the output after each item at the right."""
    for item in run["items"]:
        there = [words(row) for row in run["rows"] if row["after"] == item["item"]]
        canvas.text(ASIDE, canvas.y(item["item"]) + 4, ", ".join(there), "small")


def tsort(run: Run) -> str:
    """Rows that come out of order leave in order, ten seconds behind the greatest time."""
    canvas = Canvas("T-sort: ORDER BY at WITHIN INTERVAL '10' SECOND", 0, 32, 4, len(run["items"]))
    canvas.axes("goes out")
    bound_line(canvas, run["clocks"], "bound")
    rows_over_time(canvas, run, "at", "page")
    went_out(canvas, run, lambda row: row["page"])
    canvas.legend("● a row comes · ○ it goes out · ✕ it is refused · green: the mark less 10 s, the bound")
    return canvas.svg()


def merge(run: Run) -> str:
    """Rows of two writers in one order; each waits for the other writer."""
    canvas = Canvas("Merge: the rows of two writers in one order", 0, 30, 5, len(run["items"]))
    canvas.axes("goes out")
    bound_line(canvas, run["clocks"], "bound")
    rows_over_time(canvas, run, "rowtime", "sensor")
    went_out(canvas, run, lambda row: row["sensor"])
    canvas.legend("● a row comes · ○ it goes out · green: the clock of the slower writer, the bound of the output")
    return canvas.svg()


def holding(run: Run) -> str:
    """Groups wait for a writer that is silent, and go out when it promises that nothing earlier will come."""
    canvas = Canvas("Holding: the writer south is silent, so the minutes wait", 0, 180, 30, len(run["items"]))
    canvas.axes("held, and what goes out")
    bound_line(canvas, run["clocks"], "bound")
    rows_over_time(canvas, run, "rowtime", "sensor")
    for item, held in zip(run["items"], run["held"], strict=True):
        canvas.text(ASIDE, canvas.y(item["item"]) + 4, str(held), "small")
        there = [
            f"{clock(row['rowtime'] - MINUTE)[:5]}: {row['n']}" for row in run["rows"] if row["after"] == item["item"]
        ]
        canvas.text(ASIDE + 30, canvas.y(item["item"]) + 4, ", ".join(there), "small")
    canvas.legend("● a row comes · green: the bound of the output · right: what is held, and the count of a minute")
    return canvas.svg()


def panes(run: Run) -> str:
    """Panes fire when they are complete, and again for late rows."""
    canvas = Canvas("Panes of a minute, DISCARD AGE INTERVAL '2' MINUTE", 0, 240, 60, len(run["items"]))
    for start in range(0, 4 * MINUTE, MINUTE):
        corner = (canvas.x(start) + 1, TOP + 8)
        more = f'fill-opacity="{0.10 if start % (2 * MINUTE) == 0 else 0.04}"'
        canvas.box(corner, (canvas.x(start + MINUTE) - canvas.x(start) - 2, STEP * canvas.items + 6), "pane", more)
    canvas.axes("fires")
    bound_line(canvas, run["clocks"], "bound")
    rows_over_time(canvas, run, "at", "airport")
    went_out(canvas, run, lambda row: f"{clock(row['start'])[:5]} {row['timing']}: {row['n']}")
    canvas.legend("● a row comes · ✕ it is refused · green: the bound of the event time · right: pane, timing, count")
    return canvas.svg()


def lifetimes(run: Run) -> str:
    """Events are bars, and a snapshot begins wherever one begins or ends."""
    events = [item for item in run["items"] if item["bound"] is None]
    canvas = Canvas("Lifetimes: COUNT(*) … GROUP BY SNAPSHOT()", 0, 60, 10, len(events) + 2)
    canvas.axes("")
    for lane, item in enumerate(events, start=1):
        said = f"{item['name']}: [{clock(item['departure'])[3:]}, {clock(item['arrival'])[3:]})"
        canvas.text(16, canvas.y(lane) + 4, said, "small")
        corner = (canvas.x(item["departure"]), canvas.y(lane) - 8)
        canvas.box(corner, (canvas.x(item["arrival"]) - corner[0], 16), "north", 'rx="3" fill-opacity="0.75"')
    lane = len(events) + 2
    canvas.text(16, canvas.y(lane) + 4, "snapshots: count", "small")
    for row in run["rows"]:
        corner = (canvas.x(row["start"]), canvas.y(lane) - 10)
        size = (canvas.x(row["stop"]) - corner[0], 20)
        canvas.box(corner, size, "south out", 'stroke-width="1.5"')
        canvas.text(corner[0] + size[0] / 2, canvas.y(lane) + 4, str(row["n"]), "small", "middle")
    canvas.legend(
        "a bar is an event with a lifetime [start, end); each snapshot counts the events that are alive in it"
    )
    return canvas.svg()


def invariance(run: Run) -> str:
    """The same items in other ticks: the same rows come out, in the same order."""
    canvas = Canvas("Invariance: the same items, cut into other ticks", 0, 1, 1, 3 * len(run["cuts"]) - 1)
    canvas.text(16, 22, canvas.title)
    canvas.text(ASIDE, 22, "all that came out", "small quiet")
    step = (RIGHT - LEFT) / len(run["items"])
    for number, (name, found) in enumerate(run["cuts"].items()):
        top = canvas.y(3 * number) + 6
        canvas.text(16, top + 22, name, "small")
        begin = 0
        for end in found["ends"]:
            x, width = LEFT + step * begin + 3, step * (end - begin) - 6
            canvas.box((round(x, 1), top), (width, 34), "pane", 'rx="5" fill-opacity="0.12"')
            there = [row["page"] for row in found["rows"] if row["after"] == end]
            canvas.text(
                round(x + width / 2, 1), top + 52, f"↓ {' '.join(there)}" if there else "nothing", "small", "middle"
            )
            begin = end
        for place, page in enumerate(run["items"]):
            kind = "small bad" if page in found["refused"] else "small"
            canvas.text(round(LEFT + step * (place + 0.5), 1), top + 21, page, kind, "middle")
        out = " ".join(row["page"] for row in found["rows"])
        canvas.text(ASIDE, top + 21, out, "small")
        canvas.text(ASIDE, top + 38, f"LATE: {' '.join(found['refused'])}", "small bad")
    canvas.legend("a box is a tick, with the items that it reads; below it what goes out with this tick")
    return canvas.svg()


PACKAGES: Final = {
    "cli": "the command line",
    "web": "the console",
    "testing": "transcripts",
    "audit_spark": "what jobs of Spark lose",
    "profiling": "disorder of rows, before a run",
    "api": "the Python API",
    "audit": "traces, replays, verification",
    "observe": "metrics, logs, listeners, lineage",
    "runtime": "ticks, sources, sinks, Spark",
    "client": "writers, stream logs, the home",
    "state": "journal, segments, checkpoints",
    "plan": "binding, EXPLAIN, upgrades, formats",
    "operators": "one file per operator",
    "frames": "rows on the driver, by DuckDB",
    "expr": "monotonicity, aggregates",
    "sql": "text to trees, trees to Spark SQL",
    "kernels": "loops over whole columns",
    "core": "time, bounds, errors",
}


def layers() -> str:
    """The packages of rowtime, as pyproject.toml lists them: each imports only those below it."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ][0]
    rows = [[name.strip(" ()") for name in re.split(r"[|:]", layer)] for layer in contract["layers"]]
    canvas = Canvas("Packages: each imports only those below it", 0, 1, 1, len(rows))
    canvas.text(16, 22, canvas.title)
    for number, names in enumerate(rows):
        width = (WIDTH - 32) / len(names)
        for place, name in enumerate(names):
            x, y = round(16 + width * place, 1), canvas.y(number) - 18
            canvas.box((x, y), (width - 6, STEP - 6), "pane", 'rx="4" fill-opacity="0.12"')
            canvas.text(x + 10, y + 18, name)
            canvas.text(x + 90, y + 18, PACKAGES[name], "small quiet")
    return canvas.svg()


STATIONS: Final = {
    "writer": ("client", "a client, a file or a topic sends the row", "it raises the clock of its writer"),
    "source": ("runtime", "the tick reads a range of rows", "the least clock is that of the stream"),
    "gate": ("operators", "accepted; or kept, with the reason", "the greatest time less the tolerance"),
    "operators": ("operators", "waits in state until it is complete", "each operator computes its own"),
    "stage": ("runtime", "written where no reader sees it", "all rows below it are there"),
    "journal": ("state", "one entry: the row counts", "the same entry: never goes back"),
    "sink": ("runtime", "published, once", "status shows what is held, and by whom"),
}
"""Where a row and a bound come by: the package, what happens to the row there, and what to the bound."""


def way() -> str:
    """The way of a row and of a bound from a writer to a sink."""
    canvas = Canvas("The way of a row and of a bound", 0, 1, 1, len(STATIONS))
    row, bound = 204, 488
    canvas.text(16, 22, canvas.title)
    canvas.text(row, TOP - 18, "the row", "quiet")
    canvas.text(bound, TOP - 18, "the bound", "quiet")
    for x, kind, more in ((row - 14, "north", ""), (bound - 14, "bound", 'stroke-dasharray="5 3"')):
        canvas.line([(x, canvas.y(0)), (x, canvas.y(len(STATIONS) - 1) + 12)], kind, f'stroke-width="2" {more}')
        y = canvas.y(len(STATIONS) - 1) + 12
        canvas.line([(x - 5, y - 7), (x, y), (x + 5, y - 7)], kind, 'stroke-width="2"')
    for number, (name, (package, of_row, of_bound)) in enumerate(STATIONS.items()):
        y = canvas.y(number)
        canvas.box((16, y - 18), (150, STEP - 6), "pane", 'rx="4" fill-opacity="0.12"')
        canvas.text(26, y, name)
        canvas.text(158, y, package, "small quiet", "end")
        canvas.text(row, y, of_row, "small")
        canvas.text(bound, y, of_bound, "small")
    canvas.legend(
        "on the right of each box: its package; a bound is a number on the driver, one per writer or operator"
    )
    return canvas.svg()


PICTURES: Final[Mapping[str, Callable[[Run], str]]] = {
    "tsort": tsort,
    "merge": merge,
    "holding": holding,
    "panes": panes,
    "lifetimes": lifetimes,
    "invariance": invariance,
}


def drawn(found: Mapping[str, Run]) -> dict[Path, str]:
    """Return the files of all pictures, including those that show no run."""
    of_runs = {IMAGES / f"{name}.svg": draw(found[name]) for name, draw in PICTURES.items()}
    return {**of_runs, LAYERS: layers(), WAY: way()}


def main(arguments: list[str]) -> int:
    """Run, unless only to draw, and write the files."""
    if "--draw" not in arguments:
        from rowtime.runtime.session import derive, new_spark  # noqa: PLC0415 - drawing needs no Spark

        found = runs(derive(new_spark()))
        RUNS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for path, text in drawn(json.loads(RUNS.read_text(encoding="utf-8"))).items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
