"""Where a row of a stream went: every output whose trace contains it, and no other, also for rows without lifetimes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.audit.forward import forward
from rowtime.audit.trace import trace
from rowtime.audit.traced import Trace
from rowtime.core.errors import Refused
from rowtime.core.time import to_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM clicks (page STRING, t TIMESTAMP);
CREATE STREAM minutes (page STRING, n BIGINT) USING memory;
CREATE STREAM running (page STRING, n BIGINT) USING memory;
CREATE VIEW sorted AS SELECT STREAM t AS ROWTIME, page FROM clicks ORDER BY t WITHIN INTERVAL '10' SECOND;
CREATE PUMP d AS INSERT INTO minutes SELECT STREAM page, COUNT(*) AS n FROM sorted AS c
  GROUP BY FLOOR(c.ROWTIME TO MINUTE), page;
CREATE PUMP e AS INSERT INTO running SELECT STREAM page, COUNT(*) OVER (PARTITION BY page ORDER BY c.ROWTIME
  RANGE INTERVAL '30' SECOND PRECEDING) AS n FROM sorted AS c;
"""
CLICKS = [[(10, "a"), (20, "b"), (50, "a")], [(65, "a"), (70, "b"), (5, "a")], [(200, "z")]]


def at(second: int) -> str:
    return f"2024-01-01 00:{second // 60:02}:{second % 60:02}"


def pipeline(spark: SparkSession, folder: Path) -> rt.Pipeline:
    return rt.Pipeline(spark, home=folder / "home").sql(SQL)


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint after three ticks; the click at second 5 is late for the T-sort."""
    folder = tmp_path_factory.mktemp("forward")
    made = pipeline(spark, folder)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for clicks in CLICKS:
        with rt.writer("clicks", home=folder / "home") as log:
            log.insert([{"page": page, "t": at(second), "rowtime": at(200)} for second, page in clicks])
        engine = made._engine(folder / "check", rt.Limits(), ends=False)
        engine.tick()
        engine.stop()
    return folder


def went(found: Trace, operator: str) -> list[tuple[str, object]]:
    return [(to_text(item.at)[14:], item.columns.get("n")) for item in found.of(operator) if item.kind == "row"]


def test_a_row_is_traced_to_every_output_that_it_contributed_to(spark: SparkSession, place: Path) -> None:
    found = forward(pipeline(spark, place), place / "check", "clicks", f"t = TIMESTAMP '{at(50)}'")
    assert went(found, "d.sink") == [("01:00", 2)]
    assert went(found, "e.sink") == [("00:50", 1), ("01:05", 2)]
    operators = [*dict.fromkeys(item.operator for item in found)]
    assert operators[0] == "clicks"
    assert operators.index("sorted") < operators.index("d.sink")


@pytest.mark.slow
def test_tracing_up_is_the_inverse_of_tracing_down(spark: SparkSession, place: Path) -> None:
    made, check = pipeline(spark, place), place / "check"
    down = {
        (sink, number): {
            item.columns["t"] for item in trace(made, check, number=number, sink=sink).of("clicks") if item.columns
        }
        for sink, numbers in (("d", range(2)), ("e", range(5)))
        for number in numbers
    }
    for second, page in ((10, "a"), (20, "b"), (50, "a"), (65, "a")):
        found = forward(made, check, "clicks", f"t = TIMESTAMP '{at(second)}' AND page = '{page}'")
        (given,) = (item.columns["t"] for item in found.of("clicks") if item.columns)
        above = sum(given in times for times in down.values())
        assert len(went(found, "d.sink")) + len(went(found, "e.sink")) >= above > 0


@pytest.mark.slow
def test_a_row_that_was_refused_goes_no_further_than_its_gate(spark: SparkSession, place: Path) -> None:
    found = forward(pipeline(spark, place), place / "check", "clicks", f"t = TIMESTAMP '{at(5)}'")
    assert {item.operator for item in found if item.kind == "row"} <= {"clicks", "sorted.select"}
    (refused,) = (item for item in found if item.kind == "refused")
    assert (refused.operator, refused.tick, refused.columns["reason"]) == ("sorted", 1, "LATE")
    assert to_text(refused.at) == f"{at(5)}"
    assert "refused  2024-01-01 00:00:05  reason=LATE  refused_by=2024-01-01 00:01:10" in str(found)


def test_a_row_that_the_stream_itself_refused_is_shown_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(
        "CREATE STREAM s (n INT, d INT); CREATE STREAM o (q INT) USING memory; "
        "CREATE PUMP p AS INSERT INTO o SELECT STREAM 100 DIV d AS q FROM s;"
    )
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    with rt.writer("s", home=tmp_path / "home") as log:
        log.insert([{"n": n, "d": d, "rowtime": at(t)} for n, d, t in ((1, 5, 10), (2, 0, 20), (3, 4, 30), (4, 1, 15))])
    made.run_available(tmp_path / "check")
    found = forward(made, tmp_path / "check", "s", "n = 4")
    assert [(item.operator, item.kind, item.columns["reason"]) for item in found] == [("s", "refused", "OUT_OF_ORDER")]
    assert "s (stream)" in str(found) or "s (gate)" in str(found)
    by_query = forward(made, tmp_path / "check", "s", "n = 2")
    (refused,) = (item for item in by_query if item.kind == "refused")
    assert (refused.operator, refused.columns["reason"]) == ("p", "MALFORMED")
    assert not [item for item in forward(made, tmp_path / "check", "s", "n = 3") if item.kind == "refused"]
    with pytest.raises(Refused, match="R409 s has no row where n = 9"):
        forward(made, tmp_path / "check", "s", "n = 9")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stream", "where", "told"),
    [
        ("nobody", "true", "there is no stream nobody"),
        ("clicks", "page = 'q'", "clicks has no row where page = 'q'"),
        ("clicks", "price > 1", "no row can be found with this condition"),
    ],
)
def test_a_missing_row_is_refused(spark: SparkSession, place: Path, stream: str, where: str, told: str) -> None:
    with pytest.raises(Refused, match=f"R409 {told}"):
        forward(pipeline(spark, place), place / "check", stream, where)


def test_rows_beyond_the_listed_ones_are_traced_too(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtime.audit.forward.MOST", 1)
    found = forward(pipeline(spark, place), place / "check", "clicks", f"t = TIMESTAMP '{at(65)}'")
    assert went(found, "e.sink") == [("01:05", 2)], "it is the fourth row of each operator on the way"


def test_names_in_double_quotes_are_columns_in_a_condition(spark: SparkSession, place: Path) -> None:
    """Spark reads them as texts, so a column whose name has a space was equal to nothing."""
    sql, check = SQL.replace("page", '"my ""page"'), place / "quoted"
    made = rt.Pipeline(spark, home=place / "quoted home").sql(sql)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    with rt.writer("clicks", home=place / "quoted home") as log:
        log.insert([{'my "page': page, "t": at(second), "rowtime": at(200)} for second, page in CLICKS[0]])
    made.run_available(check)
    found = forward(made, check, "clicks", """"my ""page" = 'b' AND 'a "b' <> '"'""")
    assert [item.columns['my "page'] for item in found.of("clicks") if item.kind == "row"] == ["b"]
    assert trace(made, check, """"my ""page" = 'a'""", sink="e").of("e.sink")
    with pytest.raises(Refused, match="R409"):
        forward(made, check, "clicks", '"my ""page" = "b"')
