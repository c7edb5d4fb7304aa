"""Other readers of a checkpoint work after a change of its SQL, or say why not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.audit.readmit import readmit
from rowtime.cli.main import app
from rowtime.core.errors import Refused, RowtimeError
from tests.upgrades.changing import LATE, MINUTES, OTHER, RAW, Place, random_rows, script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

BEFORE = script(MINUTES, RAW, LATE)
AFTER = script(MINUTES, RAW, LATE, OTHER, view="in_order", within=30)


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A pipeline whose SQL changed halfway: two ticks before the change, and two after it."""
    made = Place(tmp_path_factory.mktemp("place"), spark)
    made.define(AFTER)
    rows = random_rows(random.Random("after a change"), 40)
    for number, sql in enumerate((BEFORE, BEFORE, AFTER, AFTER)):
        made.send(rows[number * 10 : (number + 1) * 10])
        made.run(sql)
    return made


def test_verify_runs_each_half_by_its_own_plan(place: Place) -> None:
    found = rt.verify(place.folder / "check", place.pipeline(AFTER))
    assert found.equal
    assert (found.tick, found.batches) == (4, 2)
    assert {output.name for output in found.outputs} >= {"p3.sink", "in_order.rejected"}
    assert all(output.rows for output in found.outputs if output.name.endswith(".sink"))


def test_verify_works_if_operators_were_removed(spark: SparkSession, tmp_path: Path) -> None:
    grouped = MINUTES.replace("{view} AS x", "(SELECT STREAM k, v FROM {view} WHERE v > 3) AS x")
    made = Place(tmp_path, spark)
    made.define(AFTER)
    rows = random_rows(random.Random("operators are gone"), 20)
    for number, sql in enumerate((script(RAW, grouped), script(RAW))):
        made.send(rows[number * 10 : (number + 1) * 10])
        made.run(sql)
    assert rt.verify(made.folder / "check", made.pipeline(script(RAW))).equal


def test_verify_needs_no_pipeline_if_the_script_is_complete(place: Place) -> None:
    assert rt.verify(place.folder / "check", spark=place.spark, home=place.folder / "home").equal


def unsealed(path: Path) -> Path:
    """A file of refused rows with the name of older versions, without a checksum."""
    return path.rename(path.with_name(f"{path.name.split('.')[0]}.parquet"))


FAULTS: dict[str, Callable[[Place], Path]] = {
    "p3.sink": lambda at: min((at.folder / "out" / "other").glob("part-*")),
    "p1.sink": lambda at: min((at.folder / "out" / "minutes").glob("part-*")),
}


@pytest.mark.parametrize("output", FAULTS)
def test_verify_finds_a_row_that_was_lost_on_either_side_of_the_change(place: Place, output: str) -> None:
    path = FAULTS[output](place)
    data = path.read_bytes()
    pq.write_table(pq.read_table(path, partitioning=None).slice(1), path)
    try:
        assert list(place.verified(AFTER)) == [output]
    finally:
        path.write_bytes(data)


def test_a_refused_row_that_was_lost_before_the_change_is_reported_by_verify(place: Place) -> None:
    kept = min((place.folder / "check" / "rejected" / "sorted").glob("*"))
    name, data = kept.name, kept.read_bytes()
    path = unsealed(kept)
    pq.write_table(pq.read_table(path, partitioning=None).slice(1), path)
    try:
        with pytest.raises(RowtimeError, match="R406"):
            place.verified(AFTER)
    finally:
        path.write_bytes(data)
        path.rename(path.with_name(name))


def test_verify_of_another_script_is_refused_with_the_statement(place: Place) -> None:
    with pytest.raises(Refused, match=r"R401.*sorted was|R401.*in_order was CREATE VIEW in_order"):
        rt.verify(place.folder / "check", place.pipeline(AFTER.replace("'30'", "'31'")))


def test_verify_refuses_if_the_old_script_has_changed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = rt.Pipeline.compile_instead
    for change, said in (
        (lambda text: text.replace("'20'", "'21'"), "the script before its change has another plan today"),
        (lambda text: text.replace("FROM s", "FROM nowhere"), "the script before its change no longer compiles: "),
    ):
        monkeypatch.setattr(
            rt.Pipeline,
            "compile_instead",
            lambda self, text, values, change=change: compiled(self, change(text), values),
        )
        with pytest.raises(Refused, match=f"R407 {said}"):
            place.verified(AFTER)


def test_a_trace_does_not_go_beyond_a_change(place: Place) -> None:
    query = place.pipeline(AFTER).start(place.folder / "check", available_now=True)
    query.awaitTermination()
    with pytest.raises(Refused, match="R407 the SQL of this checkpoint has changed"):
        query.trace(number=0, sink="p2")


def test_status_uses_the_new_names(place: Place) -> None:
    result = CliRunner().invoke(app, ["status", str(place.folder / "check"), "--json"])
    found = json.loads(result.stdout)
    assert list(found["ledger"]) == ["s", "in_order"]
    assert {output["sink"] for output in found["outputs"]} == {"p1.sink", "p2.sink", "p3.sink", "p4.sink"}
    assert "sorted" not in result.stdout


def test_a_run_says_what_changed_once(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtime.runtime.session.new_spark", lambda *_, **__: place.spark)
    monkeypatch.chdir(tmp_path)
    rows = "INSERT INTO s VALUES ('a', 1, TIMESTAMP '2024-01-01 10:00:00');"
    for name, sql in (("before", BEFORE + rows), ("after", AFTER)):
        (tmp_path / f"{name}.sql").write_text(sql.format(out=tmp_path / "out"))
    at = ["--home", "home", "--checkpoint", "here", "--available-now"]

    def run(name: str, *more: str) -> str:
        result = CliRunner().invoke(app, ["run", f"{name}.sql", *at, *more])
        assert result.exit_code == 0, result.output
        return result.stdout if "--json" in more else result.stderr

    assert "changed" not in run("before")
    said = "the script has changed: sorted is called in_order; in_order: WITHIN 0:00:20 is 0:00:30; p3 is new\n"
    assert said in run("after")
    assert "changed" not in run("after")
    told = [json.loads(line) for line in run("before", "--json").splitlines()]
    assert told[0]["changed"] == ["in_order is called sorted", "sorted: WITHIN 0:00:30 is 0:00:20", "p3 is gone"]


def test_early_rows_of_a_renamed_gate_are_readmitted_once(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    guard = " EARLY BEYOND INTERVAL '1' HOUR"
    scripts = (script(RAW, view=view, guard=guard) for view in ("sorted", "in_order"))
    before, after = (sql.replace("k, v FROM s\n", "k, v, ev FROM s\n") for sql in scripts)
    place.define(before)
    place.send([("w1", 0, "a", 1), ("w1", 4000, "early", 2), ("w1", 5000, "early", 3), ("w1", 1000, "a", 4)])
    place.run(before)
    [first] = readmit(tmp_path / "check", home=tmp_path / "home")
    assert (first.gate, first.admitted, first.early) == ("sorted", 1, 1)
    place.run(after)
    [none] = readmit(tmp_path / "check", home=tmp_path / "home")
    assert (none.gate, none.admitted, none.early) == ("in_order", 0, 1)
    place.send([("w1", 3000, "a", 5)])
    place.run(after)
    [last] = readmit(tmp_path / "check", home=tmp_path / "home")
    assert (last.admitted, last.early, last.late) == (1, 0, 0)
    assert len(list((tmp_path / "check" / "readmitted").iterdir())) == 1


TARGETS = """CREATE STREAM s (k STRING, v BIGINT);
CREATE OR REPLACE STREAM t (v {wide}, k STRING{more}) USING json OPTIONS (path '{out}/t');
CREATE OR REPLACE STREAM x (v INT{checked}) USING parquet OPTIONS (path '{out}/x');
CREATE OR REPLACE STREAM o (k STRING{more});
CREATE PUMP p AS INSERT INTO t (k, v) SELECT STREAM k, v FROM s;
CREATE PUMP q AS INSERT INTO x SELECT STREAM v FROM s;
CREATE PUMP r AS INSERT INTO o SELECT STREAM k FROM s;
"""


def test_pumps_ended_where_their_targets_were_declared_otherwise(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that waited during the change go on too, and the declaration of its arrival applies to every row."""
    place = Place(tmp_path, spark)
    before, after, narrow = (
        TARGETS.format(out="{out}", wide=wide, more=more, checked=checked)
        for wide, more, checked in (
            ("TINYINT", "", ""),
            ("BIGINT", " NOT NULL", " CHECK (v <> 7)"),
            ("SMALLINT", " NOT NULL", " CHECK (v <> 7)"),
        )
    )
    place.define(before)

    def send(who: str, *rows: tuple[str | None, int]) -> None:
        with rt.writer("s", home=tmp_path / "home", writer=who) as log:
            log.insert([{"k": k, "v": v, "rowtime": len(told) + n} for n, (k, v) in enumerate(rows)])
        told.extend(rows)

    told: list[tuple[str | None, int]] = []
    send("w2", (None, 300))
    send("w1", ("a", 7), ("b", 300))  # these wait for w2
    place.run(before)
    send("w2", (None, 7))
    send("w1", ("c", 8), ("d", 3000))
    assert set(place.run(after).changes) == {
        "t: v TINYINT is BIGINT, k is NOT NULL",
        "x: CHECK (v <> 7) is new",
        "o: k is NOT NULL",
    }
    send("w2", ("e", 9))
    engine = place.run(after)
    lines = [json.loads(line) for path in sorted((tmp_path / "out" / "t").glob("part-*")) for line in path.open()]
    assert [(row["k"], row["v"]) for row in lines] == [("a", 7), ("c", 8), ("d", 3000)]
    assert [row[-1] for row in place.rows("x")] == [300, 7, 300, 8, 3000]
    assert engine.entry["totals"]["p"] == {"in": 7, "accepted": 4, "MALFORMED": 3}
    assert engine.entry["totals"]["q"] == {"in": 7, "accepted": 6, "MALFORMED": 1}
    assert place.verified(after) == {}
    with pytest.raises(Refused, match=r"R401 the target of p has changed: t.v was BIGINT, is SMALLINT"):
        place.run(narrow)
    assert place.run(after).changes == ()
