"""Table functions of Python: the guard as a user would write it, its promises, and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARRIVALS = "CREATE STREAM arrivals (ev TIMESTAMP, n INT);"
SPLIT = (
    "SELECT STREAM * FROM STREAM({}(CURSOR(SELECT STREAM * FROM arrivals WHERE n <> 7), 'ev', INTERVAL '5' MINUTE));"
)
MINUTES = [1, 2, 4, 5, 14, 6, 7, 1, 11, 14, None, 8, 20, 16]


class UserGuard:
    """The guard of the s-Server example, row by row, as its text describes it."""

    def __init__(self, column: str, limit: timedelta) -> None:
        self.column, self.limit = column, limit // timedelta(microseconds=1)

    def columns(self, given: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        return [*given, ("result", "STRING"), ("hwm", "TIMESTAMP")]

    def process(self, rows: pa.Table, state: dict[str, Any]) -> pa.Table:
        results: list[str] = []
        marks: list[int | None] = []
        for at in rows[self.column].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist():
            mark = state.get("mark")
            if at is None:
                results.append("NULL_ROWTIME")
            elif mark is not None and at > mark + self.limit:
                results.append("EARLY")
            elif mark is not None and at < mark - self.limit:
                results.append("LATE")
            else:
                results.append("OK")
                state["mark"] = at if mark is None else max(mark, at)
            marks.append(state.get("mark"))
        made = rows.append_column("result", pa.array(results, pa.string()))
        return made.append_column("hwm", pa.array(marks, pa.int64()).cast(pa.timestamp("us", "UTC")))


class Pairs:
    """Two rows for each even n, none for the others; returns how many it has seen."""

    def columns(self, given: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        return [(name, kind) for name, kind in given if name == "n"] + [("seen", "BIGINT")]

    def process(self, rows: pa.Table, state: dict[str, Any]) -> pa.Table:
        out: list[dict[str, Any]] = []
        for row in rows.to_pylist():
            state["seen"] = state.get("seen", 0) + 1
            out += [{"n": row["n"], "seen": state["seen"], "ROWTIME": row["ROWTIME"]}] * (0 if row["n"] % 2 else 2)
        times = pa.timestamp("us", "UTC")
        return pa.Table.from_pylist(out, pa.schema({"n": pa.int32(), "seen": pa.int64(), "ROWTIME": times}))


def send(folder: Path, first: int, last: int, writer: str = "main") -> None:
    with rt.writer("arrivals", home=folder / "home", writer=writer) as log:
        log.insert([
            {"n": n, "ev": None if MINUTES[n] is None else f"2024-01-01 10:{MINUTES[n]:02}:00",
             "rowtime": f"2024-01-01 12:00:{n:02}"} for n in range(first, last)
        ])  # fmt: skip


def run(spark: SparkSession, folder: Path, sql: str, parts: Sequence[int], **functions: Any) -> list[dict[str, Any]]:
    """The rows of a query whose input comes in parts, each before another start."""
    got: list[dict[str, Any]] = []
    before = 0
    for upto in parts:
        pipeline = rt.Pipeline(spark, home=folder / "home").sql(ARRIVALS + sql)
        for name, make in functions.items():
            pipeline.function(name, make)
        pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        send(folder, before, upto)
        pipeline.run_available(folder / "check")
        before = upto
    return got


@pytest.mark.slow
@pytest.mark.parametrize("parts", [[14], [3, 5, 6, 14]], ids=["one tick", "four starts"])
def test_the_guard_that_a_user_writes_agrees_with_ours(spark: SparkSession, tmp_path: Path, parts: list[int]) -> None:
    ours = run(spark, tmp_path / "ours", SPLIT.format("early_late_split"), parts)
    theirs = run(spark, tmp_path / "theirs", SPLIT.format("user_guard"), parts, user_guard=UserGuard)
    assert [row["n"] for row in ours] == [n for n in range(14) if n != 7]
    results = [row["result"] for row in ours]
    assert results == ["OK"] * 4 + ["EARLY", "OK", "OK", "OK", "OK", "NULL_ROWTIME", "LATE", "EARLY", "OK"]
    assert ours == theirs


def test_the_step_limit_is_remembered_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    limits = "INTERVAL '5' MINUTE, INTERVAL '5' MINUTE, 'PREVIOUS ROW'"
    step = f"SELECT STREAM * FROM TABLE(early_late_split(TABLE arrivals, 'ev', {limits})) AS s;"
    got = run(spark, tmp_path, step, [5, 14])
    assert [row["result"] for row in got] == [
        "OK", "OK", "OK", "OK", "EARLY", "OK", "OK", "LATE", "EARLY", "OK", "NULL_ROWTIME", "LATE", "EARLY", "OK",
    ]  # fmt: skip


@pytest.mark.parametrize("parts", [[10], [1, 2, 6, 10]], ids=["one tick", "four starts"])
def test_a_function_may_give_any_number_of_rows(spark: SparkSession, tmp_path: Path, parts: list[int]) -> None:
    sql = "SELECT STREAM n, seen FROM TABLE(pairs(TABLE arrivals)) AS p;"
    got = run(spark, tmp_path, sql, parts, pairs=Pairs)
    assert [(row["n"], row["seen"]) for row in got] == [(n, n + 1) for n in range(0, 10, 2) for _ in range(2)]
    assert [row["rowtime"].second for row in got] == [n for n in range(0, 10, 2) for _ in range(2)]


def test_a_function_of_a_module_is_named_in_sql(spark: SparkSession, tmp_path: Path) -> None:
    sql = "CREATE FUNCTION mine AS 'tests.runtime.test_table_functions:UserGuard';" + SPLIT.format("mine")
    assert [row["result"] for row in run(spark, tmp_path, sql, [6])] == ["OK"] * 4 + ["EARLY", "OK"]


def test_each_writer_has_a_state_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(ARRIVALS + SPLIT.format("early_late_split"))
    got: list[dict[str, Any]] = []
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    send(tmp_path, 0, 4, writer="a")
    send(tmp_path, 4, 5, writer="b")  # far above those of a, and the first of b
    for writer in "ab":
        with rt.writer("arrivals", home=tmp_path / "home", writer=writer) as log:
            log.set_rowtime_bound("2024-01-01 13:00:00")
    pipeline.run_available(tmp_path / "check")
    assert [(row["n"], row["result"]) for row in got] == [(n, "OK") for n in range(5)]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("early_late_spit(CURSOR(SELECT STREAM * FROM arrivals), 'ev')", "no table function"),
        ("early_late_split(CURSOR(SELECT STREAM * FROM arrivals), 'at', INTERVAL '1' HOUR)", "no column at"),
        ("early_late_split(CURSOR(SELECT STREAM * FROM arrivals), 'n', INTERVAL '1' HOUR)", "not a timestamp"),
        ("early_late_split(CURSOR(SELECT STREAM * FROM arrivals), 'ev')", "missing 1 required"),
        ("early_late_split(CURSOR(SELECT STREAM * FROM arrivals), 'ev', INTERVAL '1' MONTH)", "no fixed length"),
        ("early_late_split(CURSOR(SELECT STREAM * FROM arrivals), 'ev', n)", "not a literal"),
        ("early_late_split('ev', INTERVAL '1' HOUR)", "needs a query or a stream"),
        ("early_late_split(TABLE arrivals, 'ev', INTERVAL '1' HOUR, INTERVAL '1' HOUR, 'NEXT')", "above the MARK"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(call: str, says: str) -> None:
    (problem,) = rt.check(f"{ARRIVALS} SELECT STREAM * FROM STREAM({call})")
    assert problem.code == "R141"
    assert says in problem.message


@pytest.mark.parametrize("definition", ["AS 'no.such.module:f'", "AS 'json:nothing'", "RETURNS INT", "AS 'json'"])
def test_a_missing_function_is_refused(definition: str) -> None:
    (problem,) = rt.check(f"CREATE FUNCTION f {definition}")
    assert problem.code == "R141"


class Wrong(Pairs):
    def __init__(self, how: str) -> None:
        self.how = how

    def process(self, rows: pa.Table, state: dict[str, Any]) -> pa.Table:
        if self.how == "fails":
            raise ValueError("no")
        if self.how == "forgets a column":
            return rows.select(["n", "ROWTIME"])
        if self.how == "goes back":
            early = pa.array([0] * rows.num_rows, pa.timestamp("us", "UTC"))
            rows = rows.set_column(rows.column_names.index("ROWTIME"), "ROWTIME", early)
        state["x"] = object() if self.how == "remembers an object" else 0
        return rows.append_column("seen", pa.array([0] * rows.num_rows))


@pytest.mark.parametrize("how", ["fails", "forgets a column", "goes back", "remembers an object"])
def test_a_function_that_breaks_its_promise_fails_the_tick(spark: SparkSession, tmp_path: Path, how: str) -> None:
    sql = f"SELECT STREAM n FROM TABLE(wrong(TABLE arrivals, '{how}')) AS w;"
    with pytest.raises(rt.Failure) as failed:
        run(spark, tmp_path, sql, [4], wrong=Wrong)
    assert failed.value.problems[0].code == "R506"
