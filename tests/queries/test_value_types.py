"""Queries over columns of every type have the rows of Spark's batch, however the input is cut into ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rowtime as rt
from rowtime.client.arrow_types import arrow_type
from rowtime.runtime.session import derive
from tests.queries.random_queries import Case, in_batch
from tests.queries.test_random_queries import disagreements
from tests.queries.value_types import (
    COLUMNS,
    MADE,
    TYPES,
    Texts,
    filtered,
    gathered,
    kinds_of,
    partitioned,
    picked,
    rows_of,
)  # fmt: skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS, PARTS = 24, 4
DEFINED = f"CREATE STREAM input ({COLUMNS}); CREATE STREAM copy ({COLUMNS});\n"
VIEW = f"CREATE VIEW a AS SELECT STREAM {MADE} FROM input;\n"
COPIED = "CREATE PUMP copied AS INSERT INTO copy SELECT STREAM * FROM input;\n"


def case_of(kind: Callable[[str], Texts], name: str) -> Case:
    return Case(f"{kind.__name__} of {name}", *kind(TYPES[name].column))


def drawn(seed: int, types: Sequence[str]) -> list[Case]:
    """One of the queries of each type."""
    chance = Random(seed)
    return [case_of(chance.choice(kinds_of(TYPES[name])), name) for name in types]


def streamed(spark: SparkSession, folder: Path, cases: Sequence[Case], parts: Sequence[list[Any]]) -> list[pa.Table]:
    """The rows of each query, all of them in one pipeline; each part of the input is a tick."""
    got: list[list[pa.Table]] = [[] for _ in cases]
    pumps = [f"CREATE PUMP p{n} AS INSERT INTO o{n} {case.streaming};\n" for n, case in enumerate(cases)]
    copied = COPIED if any("FROM copy" in case.streaming for case in cases) else ""

    def sink(number: int) -> Callable[[Any], None]:
        return lambda batch: got[number].append(batch.table()) if batch.count else None

    pipeline = rt.Pipeline(spark, home=folder / "home").sql(DEFINED + VIEW + copied + "".join(pumps))
    for number in range(len(cases)):
        pipeline.sink(f"o{number}", sink(number))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    for number, part in enumerate(parts):
        with rt.writer("input", home=folder / "home") as log:
            log.insert(part)
            if number == len(parts) - 1:
                log.end()
        pipeline.run_available(folder / "check")
    pipeline.run_available(folder / "check")  # rows that the copy received in the last tick
    return [pa.concat_tables(tables) if tables else pa.table({}) for tables in got]


@contextmanager
def in_a_view(spark: SparkSession, rows: Sequence[dict[str, Any]]) -> Iterator[SparkSession]:
    """The input as views of batch, in a session with the settings of pipelines."""
    session = derive(spark)
    columns = COLUMNS.replace("VARCHAR(5)", "STRING").replace("CHAR(3)", "STRING")
    fields = [("rowtime", "TIMESTAMP"), ("n", "INT"), ("g", "INT"), ("at", "TIMESTAMP")]
    fields += [(kind.name, kind.kept or kind.text) for kind in TYPES.values()]
    table = pa.Table.from_pylist(list(rows), pa.schema([(name, arrow_type(text)) for name, text in fields]))
    session.createDataFrame(table, f"rowtime TIMESTAMP, {columns}").createOrReplaceTempView("input")
    session.sql(f"SELECT rowtime, {MADE} FROM input").createOrReplaceTempView("a")
    try:
        yield session
    finally:
        for name in ("a", "input"):
            session.catalog.dropTempView(name)


def compare(spark: SparkSession, folder: Path, seed: int, cases: Sequence[Case], parts: int = PARTS) -> None:
    """Compare the results of queries over random rows with batch, in many ticks and in one."""
    chance = Random(seed)
    rows = rows_of(chance, ROWS)
    cuts = [0, *sorted(chance.sample(range(1, ROWS), parts - 1)), ROWS]
    taken = [rows[start:end] for start, end in zip(cuts, cuts[1:], strict=False)]
    in_ticks, at_once = (streamed(spark, folder / name, cases, of) for name, of in (("ticks", taken), ("one", [rows])))
    with in_a_view(spark, rows) as session:
        batch = [session.sql(in_batch(case.batch)).toArrow() for case in cases]
    assert 2 * sum(table.num_rows > 0 for table in batch) > len(cases), "answers without rows agree too easily"
    found = [text for each in zip(cases, in_ticks, at_once, batch, strict=True) for text in disagreements(*each)]
    if found:
        pytest.fail("\n".join(found))


def test_a_query_over_a_column_of_some_type_has_the_rows_of_batch(spark: SparkSession, tmp_path: Path) -> None:
    compare(spark, tmp_path, 3, drawn(3, Random(3).sample(sorted(TYPES), 1)), parts=2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_queries_over_columns_of_every_type_have_the_rows_of_batch(
    seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    compare(spark, tmp_path, seed, drawn(seed, sorted(TYPES)))


def as_it_is(value: Any) -> Any:
    return value


FAULTS: dict[str, tuple[Callable[[str], Texts], str, dict[str, Callable[..., Any]]]] = {
    "statistics hide NaN": (
        filtered,
        "double",
        {
            "rowtime.client.log_folder.trusted": lambda *_: True,
            "rowtime.runtime.sources.stream_log.unskipped": as_it_is,
        },
    ),
    "both zeros are keys": (partitioned, "float", {"rowtime.kernels.identity.plain": as_it_is}),
    "names have no quotes": (gathered, "binary", {"rowtime.operators.contract.state.quoted": as_it_is}),
    "an order of maps": (picked, "map", {"rowtime.expr.aggregates._of_the": lambda name, _: name + "({0})"}),
}


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("fault", FAULTS)
def test_the_law_finds_a_planted_fault(
    fault: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, name, patches = FAULTS[fault]
    compare(spark, tmp_path / "good", 5, [case_of(kind, name)])
    for place, broken in patches.items():
        monkeypatch.setattr(place, broken)
    with pytest.raises((pytest.fail.Exception, AssertionError, rt.Refused)):
        compare(spark, tmp_path / "broken", 5, [case_of(kind, name)])
