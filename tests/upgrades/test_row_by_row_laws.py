"""A pipeline continues with other filters and projections: the plan of the tick that read a row computes it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.errors import Refused
from tests.upgrades.changing import HEAD, SECOND, START, Place, Row, judged, random_cuts, random_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 40
pytestmark = pytest.mark.sampled(8)

SCRIPT = (
    HEAD
    + """CREATE OR REPLACE STREAM typed (name VARCHAR(4) NOT NULL, v INT CHECK (v <> 12)) USING json
  OPTIONS (path '{{out}}/typed'{tuning});
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s WHERE {below}
  ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE PUMP p1 AS INSERT INTO raw SELECT STREAM {raw} FROM sorted WHERE {above};
CREATE PUMP p2 AS INSERT INTO typed SELECT STREAM {typed} FROM sorted WHERE {above};
CREATE PUMP p3 AS INSERT INTO late SELECT STREAM k, v FROM sorted.rejected;
CREATE VIEW whole AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE PUMP p4 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, {total} FROM whole AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k{having};
"""
)


def script(**words: str) -> str:
    return SCRIPT.format(**{**words, "out": "{out}"}).replace("{{", "{").replace("}}", "}")


BEFORE = script(
    below="v % 5 <> 0", above="v % 2 = 0", raw="k, v", typed="k, v", total="SUM(v) AS total", having="", tuning=""
)
AFTER = script(
    below="v % 7 <> 0",
    above="v % 3 <> 0",
    raw="upper(k), v + 1000",
    typed="k || k, v * 2",
    total="SUM(v) + 1 AS total",
    having=" HAVING COUNT(*) > 1",
    tuning=", compression 'gzip'",
)
PASSES: tuple[Callable[[int], bool], ...] = (lambda v: v % 5 != 0, lambda v: v % 7 != 0)
GOES: tuple[Callable[[int], bool], ...] = (lambda v: v % 2 == 0, lambda v: v % 3 != 0)


def expected(items: list[Row], change: int) -> tuple[list[tuple[str, int]], list[tuple[str, int]], list[Row]]:
    """The rows in the directories ``raw`` and ``typed``, and the late rows; ``change``: the first item after it."""
    eras = [(int(number >= change), item) for number, item in enumerate(items)]
    era_of = {item: era for era, item in eras}
    told = judged([item for era, item in eras if PASSES[era](item[4])], 0, (20, 20))
    rows = [(era_of[item], item[3], item[4]) for item in told.ordered if GOES[era_of[item]](item[4])]
    raw = [(k.upper(), v + 1000) if era else (k, v) for era, k, v in rows]
    typed = [(k + k, v * 2) if era else (k, v) for era, k, v in rows]
    return raw, [(k, v) for k, v in typed if v != 12], told.late


def lines(place: Place, name: str) -> list[dict[str, Any]]:
    from rowtime.runtime.file_form import lines_of

    files = sorted((place.folder / "out" / name).glob("part-*"))
    return [json.loads(line) for file in files for line in lines_of(file)]


def check(place: Place, change: int, after: str) -> None:
    raw, typed, late = expected(place.items, change)
    assert place.pairs("raw") == raw
    assert [(row["name"], row["v"]) for row in lines(place, "typed")] == typed
    assert sorted(place.pairs("late")) == sorted((k, v) for *_, k, v in late)
    assert place.verified(after) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_each_row_follows_the_plan_of_the_tick_that_read_it(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    place, chance = Place(tmp_path, spark), random.Random(f"row by row {seed}")
    rows = random_rows(chance, ROWS)
    change = chance.randint(8, len(rows) - 8)
    place.define(AFTER)
    start = 0
    for end in random_cuts(chance, len(rows), change):
        place.send(rows[start:end])
        place.run(BEFORE if end <= change else AFTER)
        start = end
    place.end()
    place.run(AFTER)
    check(place, change, AFTER)
    journal = place.engine(AFTER)
    journal.stop()
    [plan] = journal.checkpoint.later_plans(journal.entry)
    assert plan.since is not None, "the journal names the tick"


class Died(BaseException):
    """Stands for the death of the driver."""


def test_a_crash_around_the_change_loses_neither_plan_nor_place(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies before the entry of the change, after it, and after the first tick with the new plan."""
    place = Place(tmp_path, spark)
    place.define(AFTER)
    rows = random_rows(random.Random("deaths"), 24, (0, 0, 5, 15))
    place.send(rows[:12])
    place.run(BEFORE)
    place.send(rows[12:])

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr("rowtime.state.journal.Journal.commit", die)
        with pytest.raises(Died):
            place.engine(AFTER)
    engine = place.engine(AFTER)
    assert engine.changes, "the entry of the change was never there"
    engine.stop()
    engine = place.engine(AFTER)
    assert engine.changes == (), "it is there"
    monkeypatch.setattr(engine, "hook", lambda point: die() if point == "after journal" else None)
    with pytest.raises(Died):
        engine.tick()
    engine.stop()
    place.end()
    place.run(AFTER)
    check(place, 12, AFTER)


def test_a_query_on_the_console_gets_columns_once_no_row_waits(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    scripts = [HEAD + f"SELECT STREAM {columns} FROM s;" for columns in ("k, v", "k, v, ev")]
    place.define(scripts[0])
    for who in ("w1", "w2"):
        with rt.writer("s", home=tmp_path / "home", writer=who) as log:
            log.insert([{"k": "a", "v": 1, "rowtime": START + (0 if who == "w1" else SECOND)}])
    place.run(scripts[0])
    with pytest.raises(
        Refused, match=r"R401 query cannot continue: rows that wait for their turn have the columns k STRING"
    ):
        place.run(scripts[1])
    place.end()
    place.run(scripts[0])
    assert place.run(scripts[1]).changes == ("query: select has changed",)


def test_a_change_of_a_variable_is_a_change_of_the_query(spark: SparkSession, tmp_path: Path) -> None:
    """And verify uses the value of that time."""
    place = Place(tmp_path, spark)
    sql = HEAD.replace("{out}", str(tmp_path / "out")) + (
        "CREATE PUMP p AS INSERT INTO raw SELECT STREAM k, v FROM s WHERE v > ${least};"
    )

    def pipeline(least: str) -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(sql, {"least": least})

    place.define(HEAD)
    for least in ("3", "1"):
        with rt.writer("s", home=tmp_path / "home") as log:
            log.insert([{"k": least, "v": v, "rowtime": START + int(least == "1") * SECOND} for v in range(5)])
        pipeline(least).start(tmp_path / "check", available_now=True).awaitTermination()
    with rt.writer("s", home=tmp_path / "home") as log:
        log.end()
    pipeline("1").start(tmp_path / "check", available_now=True).awaitTermination()
    assert place.pairs("raw") == [("3", 4), ("1", 2), ("1", 3), ("1", 4)]
    assert rt.verify(tmp_path / "check", pipeline("1")).equal
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal
