"""A pipeline whose SQL changes halfway, and a row-by-row oracle of its output: without Spark or rowtime's operators."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import rowtime as rt
from rowtime.core.time import to_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine

SECOND, MINUTE = 1_000_000, 60_000_000  # µs
START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
WRITERS = ("w1", "w2")
HEAD = """
CREATE STREAM s (k STRING, v BIGINT, ev TIMESTAMP);
CREATE STREAM minutes (k STRING, c BIGINT, total BIGINT) USING parquet OPTIONS (path '{out}/minutes');
CREATE STREAM raw (k STRING, v BIGINT) USING parquet OPTIONS (path '{out}/raw');
CREATE STREAM other (k STRING, v BIGINT) USING parquet OPTIONS (path '{out}/other');
CREATE STREAM late (k STRING, v BIGINT) USING parquet OPTIONS (path '{out}/late');
CREATE STREAM log (k STRING, v BIGINT);
"""
SORTED = """CREATE VIEW {view} AS SELECT STREAM ev AS ROWTIME, k, v FROM s
  ORDER BY ev WITHIN INTERVAL '{within}' SECOND{guard};
"""
MINUTES = """CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM {view} AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
"""
RAW = "CREATE PUMP p2 AS INSERT INTO raw SELECT STREAM k, v FROM {view};\n"
OTHER = "CREATE PUMP p3 AS INSERT INTO other SELECT STREAM k, v FROM {view};\n"
LATE = "CREATE PUMP p4 AS INSERT INTO late SELECT STREAM k, v FROM {view}.rejected;\n"
LOG = "CREATE PUMP p5 AS INSERT INTO log SELECT STREAM k, v FROM {view};\n"
Row = tuple[int, str, int, str, int]  # time µs, writer, position, k, v


def script(*pumps: str, view: str = "sorted", within: int = 20, guard: str = "") -> str:
    """Streams, one sorted view and some pumps; ``{out}`` is filled in later."""
    words = {"view": view, "within": within, "guard": guard, "out": "{out}"}
    return HEAD + "".join(part.format(**words) for part in (SORTED, *pumps))


@dataclass
class Place:
    """The folders of a pipeline; each tick may run another script."""

    folder: Path
    spark: SparkSession
    items: list[Row] = field(default_factory=list)
    positions: Counter[str] = field(default_factory=Counter)

    def pipeline(self, sql: str) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.folder / "home").sql(sql.replace("{out}", str(self.folder / "out")))

    def define(self, sql: str) -> None:
        made = self.pipeline(sql)
        for stream in made.compile().defines:
            made.home.define(stream.name, stream.as_json(), replace=True)

    def send(self, rows: Sequence[tuple[str, int, str, int]]) -> None:
        """Rows of writers: writer, second of the event, k, v."""
        for who, second, k, v in rows:
            with rt.writer("s", home=self.folder / "home", writer=who) as log:
                at = START + second * SECOND
                log.insert([{"k": k, "v": v, "ev": to_text(at)}])
                self.items.append((at, who, self.positions[who], k, v))
                self.positions[who] += 1

    def end(self) -> None:
        for who in WRITERS:
            with rt.writer("s", home=self.folder / "home", writer=who) as log:
                log.end()

    def engine(self, sql: str) -> Engine:
        return self.pipeline(sql)._engine(self.folder / "check", rt.Limits(), ends=False)

    def run(self, sql: str) -> Engine:
        """Process the present input, with a new driver."""
        engine = self.engine(sql)
        while engine.tick() is not None:
            pass
        engine.stop()
        return engine

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a directory, in the order of its files, with rowtimes in µs."""
        files = sorted((self.folder / "out" / name).glob("part-*"))
        return [tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()]

    def pairs(self, name: str) -> list[tuple[str, int]]:
        """The columns k and v of a directory, in order."""
        return [(row[-2], row[-1]) for row in self.rows(name)]

    def verified(self, sql: str) -> Mapping[str, tuple[str, ...]]:
        """The differences, by output."""
        found = rt.verify(self.folder / "check", self.pipeline(sql))
        return {output.name: output.first for output in found.outputs if output.differences}


def random_rows(
    chance: random.Random, count: int, falls: Sequence[int] = (0, 0, 5, 15, 25, 40, 60)
) -> list[tuple[str, int, str, int]]:
    """Rows of two writers whose times rise in irregular steps and fall back by up to the given seconds.

    Each writer begins with a row.
    """
    rows, now = [(who, 0, "k0", -1) for who in WRITERS], 0
    for number in range(count):
        now += chance.randint(0, 12)
        rows.append((chance.choice(WRITERS), max(0, now - chance.choice(falls)), f"k{number % 2}", number))
    return rows


def random_cuts(chance: random.Random, count: int, change: int) -> list[int]:
    """Ends of ticks, in order; among them are the first row of each writer, the change and the last row."""
    more = {chance.randint(2, count) for _ in range(chance.randint(1, 3))}
    return sorted({2, change, count, *more})


@dataclass
class Judged:
    """The oracle's rows: accepted, in the order of a T-sort, and late."""

    accepted: list[Row]
    late: list[Row]

    @property
    def ordered(self) -> list[Row]:
        return sorted(self.accepted)


def last_of_minute(at: int) -> int:
    """The last instant of a minute, by which GROUP BY … WITHIN judges a row."""
    return at // MINUTE * MINUTE + MINUTE - 1


def judged(
    items: Sequence[Row],
    change: int,
    within: Sequence[int],
    early: Sequence[int | None] = (None, None),
    by: Callable[[int], int] = lambda at: at,
) -> Judged:
    """Row by row: from item ``change`` on the second tolerance applies, but the bound of the first tolerance stays.

    ``within`` and ``early``: seconds before and after the change; ``by``: the time of a row that is compared.
    """
    marks: dict[str, int] = {}
    floors: dict[str, int] = defaultdict(int)
    found = Judged([], [])
    for number, item in enumerate(items):
        if number == change:
            floors.update({who: mark - within[0] * SECOND for who, mark in marks.items()})
        at, who = item[:2]
        mark = marks.get(who, 0)
        tolerance, limit = within[number >= change] * SECOND, early[number >= change]
        far = limit is not None and who in marks and at > mark + limit * SECOND
        if far or by(at) < max(mark - tolerance, floors[who]):
            found.late.append(item)
            continue
        found.accepted.append(item)
        marks[who] = max(mark, at)
    return found


def minutes(rows: Sequence[Row]) -> Counter[tuple[str, int, int]]:
    """Number of rows and totals by minute and k."""
    groups: dict[tuple[int, str], list[int]] = defaultdict(list)
    for at, _, _, k, v in rows:
        groups[at // MINUTE, k].append(v)
    return Counter((k, len(values), sum(values)) for (_, k), values in groups.items())
