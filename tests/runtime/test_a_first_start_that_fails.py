"""A first start that fails leaves nothing behind: the corrected script starts as if for the first time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from reliability.crash.inside import copied
from reliability.crash.writes import watched
from rowtime.client.home import Home
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = """CREATE STREAM f (n INT) USING json OPTIONS (path '{folder}/in');
CREATE STREAM s ({columns});
INSERT INTO s VALUES ({value});
CREATE STREAM o (n INT) USING parquet OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM f;
CREATE PUMP q AS INSERT INTO o SELECT STREAM n FROM s;"""


def start(spark: SparkSession, folder: Path, **parts: str) -> rt.Query:
    sql = MISSING.format(**{"folder": folder, "columns": "n INT", "value": "1", **parts})
    return rt.Pipeline(spark, home=folder / "home").sql(sql).run_available(folder / "check", end=True)


@pytest.mark.slow
def test_the_corrected_script_defines_its_streams_anew(spark: SparkSession, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.define("kept", {"columns": [], "format": None, "options": {}})
    with pytest.raises(rt.Refused, match="R206"):  # found when the rows are inserted
        start(spark, tmp_path, columns="n SMALLINT", value="'one'")
    assert home.names() == ["kept"]
    with pytest.raises(rt.Failure, match="R501"):  # found by the first tick, after the insert: there is no folder
        start(spark, tmp_path, columns="n BIGINT", value="7")
    assert home.names() == ["kept"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"n": 5}\n')
    query = start(spark, tmp_path)
    assert query.ledger["s"] == {"in": 1, "accepted": 1}
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row["n"] for row in rows) == [1, 5]
    assert home.names() == ["f", "kept", "o", "s"]


def test_rows_that_somebody_else_has_written_stay(spark: SparkSession, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    (tmp_path / "in").mkdir()
    pipeline = rt.Pipeline(spark, home=home.path).sql(MISSING.format(folder=tmp_path, columns="n INT", value="1"))
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=False)
    with rt.writer("s", home=home, writer="other") as other:
        other.insert([{"n": 2}])
    engine.stop()
    assert home.names() == ["s"]
    assert start(spark, tmp_path).ledger["s"]["in"] == 2


OWNED = """CREATE STREAM f (n INT) USING json OPTIONS (path '{folder}/in');
CREATE STREAM o (n INT) USING parquet OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM f;
CREATE PUMP q AS INSERT INTO l SELECT STREAM n FROM f;"""


def test_a_start_that_failed_had_taken_the_targets_of_its_pumps(spark: SparkSession, tmp_path: Path) -> None:
    """In a notebook, which has a new checkpoint for each run, taking over was the only way out."""
    home = Home(tmp_path / "home")
    home.define("l", {"columns": [{"name": "n", "type": "INT", "nullable": True}]})

    def go(number: int) -> None:
        sql = OWNED.format(folder=tmp_path)
        rt.Pipeline(spark, home=home.path).sql(sql).run_available(tmp_path / str(number), end=True)

    with pytest.raises(rt.Failure, match="R501"):
        go(1)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"n": 5}\n')
    go(2)
    for other in (1, 3):
        with pytest.raises(rt.Refused, match=r"R44[01]"):  # a pipeline that has started keeps them
            go(other)
    go(2)
    [entry] = [one for its in scan(home.log_path("l"), {}).values() for one in its if isinstance(one, Rows)]
    assert (entry.count, spark.read.parquet(str(tmp_path / "out")).count()) == (1, 1)


DROPS = """DROP STREAM IF EXISTS gone; DROP STREAM again; CREATE STREAM again ({columns});
CREATE STREAM s (n INT) USING json OPTIONS (path '{folder}/in');
CREATE STREAM o (n BIGINT);
INSERT INTO again VALUES ({value}); INSERT INTO kept VALUES (9);
ALTER STREAM again SET ROWTIME BOUND TIMESTAMP '2024-01-01 00:00:00';
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM again;
CREATE PUMP q AS INSERT INTO o SELECT STREAM n FROM s;"""
Found = dict[str, tuple[dict[str, Any] | None, list[int]]]


def dropping(spark: SparkSession, folder: Path, **parts: str) -> rt.Pipeline:
    sql = DROPS.format(**{"folder": folder, "columns": "n INT", "value": "1", **parts})
    return rt.Pipeline(spark, home=folder / "home").sql(sql)


def before_a_start(folder: Path) -> None:
    home = Home(folder / "home")
    for number, name in enumerate(("gone", "again", "kept")):
        home.define(name, {"columns": [{"name": "n", "type": "BIGINT", "nullable": True}]})
        with rt.writer(name, home=home) as log:
            log.insert([{"n": number}])
    (folder / "in").mkdir()
    (folder / "in" / "1.json").write_text('{"n": 5}\n')


def in_the_home(folder: Path) -> Found:
    """For each stream, what the next process finds in the home: its definition and its rows, of all writers."""
    home = Home(folder / "home")
    found: Found = {}
    for name in ("gone", "again", "kept", "s", "o"):
        definition, log = home.definition(name), home.log_path(name)
        entries = [entry for its in scan(log, {}).values() for entry in its if isinstance(entry, Rows)]
        rows = [n for entry in entries for n in pq.read_table(log / entry.path)["n"].to_pylist()]
        found[name] = definition, rows if name != "kept" else []
    assert home.names() == sorted(name for name, (definition, _) in found.items() if definition)
    return found


def test_a_start_that_failed_had_dropped_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    before_a_start(tmp_path)
    found = in_the_home(tmp_path)
    (tmp_path / "in" / "1.json").rename(tmp_path / "1.json")
    (tmp_path / "in").rmdir()
    with pytest.raises(rt.Failure, match="R501"):  # found by the first tick
        dropping(spark, tmp_path).run_available(tmp_path / "check", end=True)
    assert in_the_home(tmp_path) == found
    (tmp_path / "in").mkdir()
    (tmp_path / "1.json").rename(tmp_path / "in" / "1.json")
    for again in (False, True):  # the second start drops nothing
        dropping(spark, tmp_path, columns="n SMALLINT", value="7").run_available(tmp_path / "check", end=True)
        now = in_the_home(tmp_path)
        assert now["gone"] == (None, [])
        assert (now["again"][1], now["o"][1]) == ([7], [7, 5]), again


@pytest.mark.slow
def test_a_first_start_that_was_killed_left_its_definitions(spark: SparkSession, tmp_path: Path) -> None:
    """At every write: the disk before a write is the disk after a crash at that write."""
    live, images = tmp_path / "live", list[Path]()
    before_a_start(live)
    before = in_the_home(live)
    made = dropping(spark, live)
    made.compile()

    def keep(_what: str, _path: str) -> None:
        if not busy:  # copying writes too
            busy.append(True)
            images.append(copied(live, tmp_path / f"image {len(images)}"))
            busy.clear()

    busy: list[bool] = []
    with watched(live, keep):
        made.run_available(live / "check", end=True)
    after = in_the_home(live)
    assert after["again"][1] == [1]
    assert after != before

    began = []
    for image in images:
        shutil.rmtree(live)
        image.rename(live)
        began.append(Checkpoint(live / "check").journal.last() is not None)
        alive = in_the_home(live)
        for name in after:
            definition, rows = (after if began[-1] else before)[name]
            assert alive[name] == (definition, rows if not began[-1] or name != "o" else alive[name][1]), name
        assert not [path.name for path in (live / "home" / "starts").glob("[!.]*")]
        assert not [path.name for path in (live / "home" / "logs").glob(".aside*")]
        copied(live, image)
    first = began.index(True)
    assert 20 < first < len(began) - 5, "both sides of the first commit were tried"
    for number in (first // 2, first - 1, first):  # the corrected script runs, or the first start continues
        shutil.rmtree(live)
        images[number].rename(live)
        given = {} if began[number] else {"columns": "n SMALLINT", "value": "7"}
        dropping(spark, live, **given).run_available(live / "check", end=True)
        assert in_the_home(live)["o"][1] == [1 if began[number] else 7, 5], number


def test_definitions_count_while_a_start_lives(spark: SparkSession, tmp_path: Path) -> None:
    before_a_start(tmp_path)
    found = in_the_home(tmp_path)
    engine = dropping(spark, tmp_path)._engine(tmp_path / "check", rt.Limits(), ends=False)
    alive = in_the_home(tmp_path)
    assert (alive["gone"], alive["again"][1]) == (found["gone"], [1])
    with pytest.raises(rt.Refused, match="R404"):  # and a second one changes nothing
        dropping(spark, tmp_path, columns="n BIGINT", value="3")._engine(tmp_path / "check", rt.Limits(), ends=False)
    assert in_the_home(tmp_path) == alive
    engine.stop()
    assert in_the_home(tmp_path) == found
