"""``rowtime migrate``: other SQL, and the history computed again, as if the new script had always run."""

from __future__ import annotations

import random
import re
import shlex
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.core.errors import Refused
from rowtime.state.journal import Journal
from tests.upgrades.changing import HEAD, LOG, MINUTES, RAW, SORTED, Place, judged, minutes, random_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEW = SORTED.format(view="sorted", within=20, guard="")
BEFORE = HEAD + VIEW + MINUTES.format(view="sorted") + RAW.format(view="sorted") + LOG.format(view="sorted")
FEW = VIEW.replace("FROM s", "FROM s WHERE v % 2 = 0")
AFTER = HEAD + FEW + MINUTES.format(view="sorted") + RAW.format(view="sorted") + LOG.format(view="sorted")
NEW = AFTER + (
    "CREATE STREAM more (k STRING, v BIGINT) USING parquet OPTIONS (path '{out}/more');"
    "CREATE PUMP p9 AS INSERT INTO more SELECT STREAM k, v FROM sorted;"
)
PUMPS = ("p1", "p2", "p5")


def started(spark: SparkSession, folder: Path, ticks: int = 3) -> Place:
    """A pipeline after some ticks."""
    place = Place(folder, spark)
    place.define(NEW)
    rows = random_rows(random.Random("migration"), 36, (0, 0, 5, 15, 25, 40))
    size = len(rows) // ticks
    for number in range(ticks):
        place.send(rows[number * size : (number + 1) * size])
        place.run(BEFORE)
    return place


def test_the_history_is_computed_again_and_existing_rows_stay(spark: SparkSession, tmp_path: Path) -> None:
    """The state is that of the new script over all items.

    A new target gets all rows, an existing one the rows that follow.
    """
    place = started(spark, tmp_path)
    there = {name: place.rows(name) for name in ("raw", "minutes")}
    bound = place.engine(BEFORE)
    bound.stop()
    floors = {name: bound.entry["control"][name]["bound"] for name in ("p1.sink", "p2.sink")}
    found = rt.migrate(tmp_path / "check", place.pipeline(NEW), take_over=PUMPS)
    assert found.sinks["p9"] == "is new"
    assert found.sinks["p2"] == f"continues after {len(there['raw'])} rows"
    assert place.verified(NEW) == {}
    place.send([("w1", 700, "k0", 100), ("w2", 700, "k1", 101), ("w1", 705, "k1", 102)])
    place.run(NEW)
    place.end()
    place.run(NEW)
    told = judged([item for item in place.items if item[4] % 2 == 0], 0, (20, 20))
    assert place.pairs("more") == [row[3:] for row in told.ordered]
    raw = place.pairs("raw")
    assert raw[: len(there["raw"])] == [(row[-2], row[-1]) for row in there["raw"]], "nothing is removed"
    assert raw[len(there["raw"]) :] == [row[3:] for row in told.ordered if row[0] >= floors["p2.sink"]]
    ends = minutes(
        [row for row in told.accepted if row[0] // 60_000_000 * 60_000_000 + 60_000_000 >= floors["p1.sink"]]
    )
    assert Counter(row[-3:] for row in place.rows("minutes")[len(there["minutes"]) :]) == ends
    assert place.verified(NEW) == {}
    engine = place.engine(NEW)
    engine.stop()
    below = len([row for row in told.ordered if row[0] < floors["p2.sink"]])
    assert engine.entry["totals"]["p2.takeover"] == {"in": below, "accepted": 0, "OUT_OF_ORDER": below}


@pytest.mark.slow
def test_cuts_of_the_input_stay_where_they_were(spark: SparkSession, tmp_path: Path) -> None:
    """A bound that was set by hand and a writer that joined later took effect between ticks; so they do again."""
    from rowtime.state.settings import put

    place = Place(tmp_path, spark)
    place.define(NEW)
    place.send([("w1", 0, "a", 2), ("w1", 30, "a", 4)])
    engine = place.run(BEFORE)
    put(engine.checkpoint.folder, "sorted", 1_704_103_200_000_000 + 60_000_000)
    place.send([("w1", 70, "a", 6), ("w1", 55, "late", 8), ("w2", 75, "b", 10)])
    place.run(BEFORE)
    found = rt.migrate(tmp_path / "check", place.pipeline(NEW), take_over=PUMPS)
    assert found.batches > 1
    place.end()
    place.run(NEW)
    assert place.pairs("more") == [("a", 2), ("a", 4), ("a", 6), ("b", 10)]
    assert place.verified(NEW) == {}


def test_the_fate_of_each_sink_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    place = started(spark, tmp_path, 1)
    check = tmp_path / "check"
    with pytest.raises(Refused, match=r"R447 p1 has written rows to minutes, and it is not specified") as refused:
        rt.migrate(check, place.pipeline(NEW), take_over=("p2", "p5"))
    assert "--take-over p1" in str(refused.value)
    with pytest.raises(Refused, match=r"R447 p2 writes to other now, and that name already has rows of the pump p2"):
        rt.migrate(check, place.pipeline(NEW.replace("INSERT INTO raw", "INSERT INTO other")), take_over=PUMPS)
    with pytest.raises(Refused, match=r"R447 q2 writes to raw now, and that name already has rows of the pump p2"):
        rt.migrate(check, place.pipeline(NEW.replace("PUMP p2", "PUMP q2")), take_over=PUMPS)
    with pytest.raises(Refused, match=r"R449 the checkpoint already uses this script"):
        rt.migrate(check, place.pipeline(BEFORE), take_over=PUMPS)
    with pytest.raises(Refused, match=r"R405 .* has no tick"):
        rt.migrate(tmp_path / "none", place.pipeline(NEW), take_over=PUMPS)
    assert place.run(BEFORE).changes == (), "nothing has changed"
    said = NEW + "".join(f"ALTER PUMP {pump} TAKE OVER;" for pump in PUMPS)
    assert rt.migrate(check, place.pipeline(said)).tick == 1


def test_a_pump_that_has_written_no_rows_needed_a_choice(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is there to follow, so it is as new, whether or not its target changes."""
    sql = """CREATE STREAM s (v INT);
    CREATE STREAM o (v BIGINT) USING parquet OPTIONS (path '{out}');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM {value} FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE);"""

    def pipeline(value: str, out: str) -> rt.Pipeline:
        text = sql.format(value=value, out=tmp_path / out).replace("CREATE STREAM o", "CREATE OR REPLACE STREAM o")
        return rt.Pipeline(spark, home=tmp_path / "home").sql(text)

    pipeline("SUM(v) AS v", "one").run_available(tmp_path / "check")
    with rt.writer("s", home=tmp_path / "home") as writer:
        writer.insert([{"v": v, "rowtime": v * 1_000_000} for v in range(4)])
        pipeline("SUM(v) AS v", "one").run_available(tmp_path / "check")
        found = rt.migrate(tmp_path / "check", pipeline("MAX(v) AS v", "one"))
        assert found.sinks == {"p": "is new"}
        assert rt.migrate(tmp_path / "check", pipeline("MIN(v) + 10 AS v", "two")).sinks == {"p": "is new"}
        writer.end()
    pipeline("MIN(v) + 10 AS v", "two").run_available(tmp_path / "check")
    rows = [pq.read_table(path).to_pylist() for path in (tmp_path / "two").glob("*.parquet")]
    assert rows == [[{"rowtime": datetime(1970, 1, 1, 0, 1, tzinfo=UTC), "v": 10}]]
    assert not [*(tmp_path / "one").glob("*.parquet")]
    with pytest.raises(Refused, match="R447 p has written rows to o"):
        rt.migrate(tmp_path / "check", pipeline("MAX(v) AS v", "two"))


def test_missing_input_ends_a_migration_before_anything_changes(spark: SparkSession, tmp_path: Path) -> None:
    place = started(spark, tmp_path, 1)
    gone = min((tmp_path / "home" / "logs" / "s" / "w1").rglob("*.parquet"))
    kept = gone.read_bytes()
    gone.unlink()
    with pytest.raises(Refused, match=r"R448 some of the input that was read is gone: "):
        rt.migrate(tmp_path / "check", place.pipeline(NEW), take_over=PUMPS)
    gone.write_bytes(kept)
    assert place.run(BEFORE).changes == ()


FILES = """CREATE STREAM f (k STRING, v BIGINT) USING json OPTIONS (path '{out}/in', rowtime.column 'at');
CREATE STREAM minutes (k STRING, c BIGINT) USING parquet OPTIONS (path '{out}/minutes');
CREATE PUMP p1 AS INSERT INTO minutes
  SELECT STREAM k, COUNT(*) AS c FROM f WHERE v < {most} GROUP BY FLOOR(f.ROWTIME TO MINUTE), k;
"""


@pytest.mark.slow
def test_the_rest_of_files_starts_anew_as_the_hint_says(spark: SparkSession, tmp_path: Path) -> None:
    place, folder = Place(tmp_path, spark), tmp_path / "out" / "in"
    folder.mkdir(parents=True)
    for minute in range(3):
        row = f'{{"at": "2024-01-01 10:0{minute}:00", "k": "a", "v": {minute}}}\n'
        (folder / f"{minute}.json").write_text(row)
    place.run(FILES.replace("{most}", "100"))
    assert len(place.rows("minutes")) == 2
    (folder / "0.json").unlink()
    with pytest.raises(Refused, match=r"(?s)R448 .*the input that is still there.* --checkpoint of its own"):
        rt.migrate(tmp_path / "check", place.pipeline(FILES.replace("{most}", "2")), take_over=["p1"])
    place.pipeline(FILES.replace("{most}", "2")).run_available(tmp_path / "own", take_over=["p1"])
    assert len(place.rows("minutes")) == 2 + 1, "that of the second file; the minute of the third is open"


def test_rows_that_were_skipped_are_not_read_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = started(spark, tmp_path, 1)
    last = Journal.last
    skipped = [{"sink": "p2.sink"}]
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "last", lambda self: {**(last(self) or {}), "skipped": skipped})
        with pytest.raises(Refused, match=r"R449 rows of p2\.sink were skipped by hand"):
            rt.migrate(tmp_path / "check", place.pipeline(NEW), take_over=PUMPS)
    # The new script with a checkpoint of its own.
    new = NEW.replace("PUMP p", "PUMP r")
    other = Place(tmp_path, spark)
    engine = other.pipeline(new)._engine(tmp_path / "another", rt.Limits(), ends=False)
    assert engine.tick() is not None
    engine.stop()


class Died(BaseException):
    """Stands for the death of the driver."""


def die(*_: object, **__: object) -> None:
    raise Died


@pytest.mark.slow
@pytest.mark.parametrize("where", ["before its entry", "behind its entry"])
def test_a_migration_happens_completely_or_not_at_all(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    place = started(spark, tmp_path, 1)
    there = place.rows("raw")
    with monkeypatch.context() as patched:
        if where == "before its entry":
            patched.setattr("rowtime.state.journal.Journal.commit", die)
        else:
            patched.setattr("rowtime.api.pipeline.Pipeline._engine", die)
        with pytest.raises(Died):
            rt.migrate(tmp_path / "check", place.pipeline(NEW), take_over=PUMPS)
    assert place.rows("raw") == there
    if where == "before its entry":
        assert place.run(BEFORE).changes == (), "the old script goes on"
        assert place.verified(BEFORE) == {}
        rt.migrate(tmp_path / "check", place.pipeline(NEW), take_over=PUMPS)
    place.end()
    place.run(NEW)
    told = judged([item for item in place.items if item[4] % 2 == 0], 0, (20, 20))
    assert place.pairs("more") == [row[3:] for row in told.ordered]
    assert place.verified(NEW) == {}


@pytest.mark.slow
def test_the_script_may_change_again_after_a_migration(spark: SparkSession, tmp_path: Path) -> None:
    place = started(spark, tmp_path, 1)
    rt.migrate(tmp_path / "check", place.pipeline(NEW), take_over=PUMPS)
    place.send([("w1", 700, "k0", 100), ("w2", 700, "k1", 102), ("w1", 705, "k1", 103)])
    other = NEW.replace(
        "INSERT INTO more SELECT STREAM k, v FROM sorted", "INSERT INTO more SELECT STREAM k, v + 1 FROM sorted"
    )
    assert place.run(other).changes == ("p9: select has changed",)
    place.end()
    place.run(other)
    assert place.pairs("more")[-2:] == [("k0", 101), ("k1", 103)]
    assert place.verified(other) == {}


def test_the_command_says_what_it_has_done(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = started(spark, tmp_path, 1)
    monkeypatch.setattr("rowtime.runtime.session.new_spark", lambda *_, **__: spark)
    (tmp_path / "a new.sql").write_text(NEW.replace("{out}", str(tmp_path / "out")))
    at = [str(tmp_path / "a new.sql"), "--home", str(tmp_path / "home"), "--checkpoint", str(tmp_path / "check")]
    result = CliRunner().invoke(app, ["run", *at, "--available-now"])
    command = re.search(
        r"rowtime (migrate .*'.*/a new\.sql'.* --take-over p1 --take-over p2 --take-over p5)", result.output
    )
    assert (result.exit_code, "R401" in result.output, command is not None) == (1, True, True), result.output
    result = CliRunner().invoke(app, ["migrate", *at])
    assert (result.exit_code, re.findall(r"--take-over (\w+)", result.output)) == (1, [*PUMPS]), result.output
    assert command is not None
    result = CliRunner().invoke(app, shlex.split(command[1]))
    assert result.exit_code == 0, result.output
    assert "computed again in 1 batch, as tick 1" in result.stdout
    assert f"p2 continues after {len(place.rows('raw'))} rows" in result.stdout
    result = CliRunner().invoke(app, shlex.split(command[1]))
    again = re.search(r"(?s)R449 the checkpoint already uses this script.*rowtime (run .*)\.$", result.output.strip())
    assert (result.exit_code, again is not None) == (1, True), result.output
    assert again is not None
    result = CliRunner().invoke(app, [*shlex.split(again[1]), "--available-now"])
    assert result.exit_code == 0, result.output
