"""Bounds that are set by hand: stored in the journal with their positions, applied once, whoever set them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.core.errors import Refused
from rowtime.core.time import to_micros
from rowtime.plan.bind.event_time import manual
from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from rowtime.state import settings
from rowtime.testing import runner
from rowtime.testing.runner import Outcome
from rowtime.testing.transcripts import ScriptItem, Transcript

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM a (n INT, t TIMESTAMP);
CREATE VIEW v EVENT TIME (t, MODE MANUAL) AS SELECT STREAM * FROM a;
SELECT STREAM PANE_INDEX AS i, COUNT(*) AS c FROM v
GROUP BY PANES(t, DURATION INTERVAL '10' SECOND, DISCARD AGE INTERVAL '1' MINUTE)"""
AT = to_micros("2024-01-01 10:00:00")


def _row(number: int, seconds: int) -> ScriptItem:
    at = AT + seconds * 1_000_000
    return ScriptItem(number, "a", "x", {"n": number, "t": at, "rowtime": AT + number}, None)


def test_a_bound_that_is_set_is_journaled_and_applied_once(spark: SparkSession, tmp_path: Path) -> None:
    case = Transcript("manual", "", SQL, tuple(_row(n, n) for n in (1, 2, 3)), (), "exact", frozenset())
    found = Outcome()

    def run(upto: int) -> runner.Engine:
        engine = runner._engine(derive(spark), compile_script(SQL), case, tmp_path, found)
        engine.sources["a"].upto = upto  # type: ignore[attr-defined]
        found.ends.append(upto)
        engine.tick()
        engine.stop()
        return engine

    run(2)
    plan = runner.Checkpoint(tmp_path).plan
    assert plan is not None
    settings.put(tmp_path, manual(plan, "v"), AT + 10_000_000)
    entry = run(3).entry  # the bound comes after rows 1 and 2, and before row 3
    assert [row for _, row in found.rows] == [{"rowtime": found.rows[0][1]["rowtime"], "i": 0, "c": 2}]
    (setting,) = entry["settings"]
    assert (setting["operator"], setting["at"], setting["after"]) == ("v.event_time", AT + 10_000_000, {"a": {"x": 3}})
    said = CliRunner().invoke(app, ["bound", "v", "2024-01-01 10:00:20", "--checkpoint", str(tmp_path)])
    assert (said.exit_code, "v.event_time" in said.output) == (0, True)
    run(3)
    assert [(row["i"], row["c"]) for _, row in found.rows] == [(0, 2), (1, 3)]
    assert not settings.waiting(tmp_path, {})


SORTED = """CREATE STREAM a (n INT, t TIMESTAMP);
CREATE VIEW v AS SELECT STREAM t AS ROWTIME, n FROM a ORDER BY t WITHIN INTERVAL '1' HOUR;
SELECT STREAM COUNT(*) AS c FROM v GROUP BY FLOOR(v.ROWTIME TO MINUTE)"""


def test_a_t_sort_accepts_a_bound_of_its_time(spark: SparkSession, tmp_path: Path) -> None:
    case = Transcript("sorted", "", SORTED, tuple(_row(n, s) for n, s in enumerate((1, 30, 59, 90), 1)), (), "exact",
                      frozenset())  # fmt: skip
    given = {2: ("v", AT + 60_000_000)}
    found = runner.play(derive(spark), case, [2, 4], restart=True, given=given)
    assert [(tick, row["c"]) for tick, row in found.rows] == [(1, 2)]
    assert found.rejected == {(3, "LATE")}
    assert found.clocks[-1] == AT + 120_000_000  # the end of the open minute


def test_a_promotion_is_found_by_the_name_of_its_view() -> None:
    plan = compile_script(SORTED).described()
    assert manual(plan, "V") == "v"
    with pytest.raises(Refused, match=r"R171 .*\n.*v\."):
        manual(plan, "a")


def test_other_modes_refuse_manual_bounds_in_every_form(tmp_path: Path) -> None:
    plan = compile_script(SQL.replace("MODE MANUAL", "LAG INTERVAL '1' SECOND")).described()
    with pytest.raises(Refused, match="R171"):
        manual(plan, "v")
    script = SQL + ";\nALTER VIEW {} SET ROWTIME BOUND TIMESTAMP '2024-01-01 10:00:00'"
    assert compile_script(script.format("v")).problems == ()
    (problem,) = compile_script(script.format("a")).problems
    assert (problem.code, problem.place.line if problem.place else 0) == ("R171", 5)
    assert "v" in problem.hint


@pytest.mark.parametrize("order", ["END", "SET ROWTIME BOUND TIMESTAMP '2024-01-01 11:00:00'"])
def test_a_limit_refuses_no_row_that_was_written_before_a_bound_for_every_writer(
    spark: SparkSession, tmp_path: Path, order: str
) -> None:
    """The bound waits for the tick that reads the last of these rows, also after a restart."""
    values = ", ".join(f"(TIMESTAMP '2024-01-01 10:00:{second:02}', {second})" for second in range(7))
    sql = f"""CREATE STREAM a (v INT); INSERT INTO a (ROWTIME, v) VALUES {values}; ALTER STREAM a {order};
    SELECT STREAM COUNT(*) AS n FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR);"""
    got: list[int] = []

    def pipeline() -> rt.Pipeline:
        made = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
        return made.sink("result", lambda batch: got.extend(batch.table()["n"].to_pylist() if batch.count else []))

    engine = pipeline()._engine(tmp_path / "check", rt.Limits(rows=2), ends=False)
    assert engine.tick() is not None
    engine.stop()
    query = pipeline().run_available(tmp_path / "check", limits=rt.Limits(rows=2))
    assert query.ledger["a"] == {"in": 7, "accepted": 7}
    assert got == [7]
