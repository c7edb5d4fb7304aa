"""Every documented example of Spark's functions has the same result in rowtime as in Spark (semantics 5).

Dozens of expressions are in one query each: in a select list and in HAVING.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import BinaryType

import rowtime as rt
from rowtime.runtime.session import derive
from rowtime.sql.generate import literal
from tests.queries.spark_examples import Example, examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

REFUSED = {
    "R111": "the value is no function of the row",
    "R190": "a generator makes several rows; or a sub-query in an expression",
    "R160": "a window function needs OVER, and this one is not supported there",
    "R103": "a column of ours: CURRENT_TIME and the like without brackets are names",
}
"""Codes with which ``check`` refuses an example, and why."""

CLOCK = ("current_timestamp", "current_date", "curdate", "now()", "localtimestamp", "unix_timestamp()")
"""Functions of the clock: here their time is that of the first start."""

CHUNK = 60
START = 1_704_067_200_000_000  # 2024-01-01, µs


def shown(text: str, *, binary: bool = False) -> str:
    """The type and the value of an expression as a text."""
    value = f"hex({text})" if binary else f"CAST({text} AS STRING)"
    return f"concat(typeof({text}), ' ', coalesce({value}, 'NULL'))"


def of_spark(spark: SparkSession, given: Sequence[Example]) -> list[tuple[Example, str, str]]:
    """Examples with an expression for their value, and that value; without those that Spark itself refuses."""
    texts = [(example, text) for example in given if (text := _shown_of(spark, example)) is not None]
    values = [value for some in chunks(texts) for value in _values(spark, some)]
    return [(*one, value) for one, value in zip(texts, values, strict=True) if value is not None]


def _shown_of(spark: SparkSession, example: Example) -> str | None:
    try:
        kinds = [field.dataType for field in spark.sql(f"SELECT {example.text}").schema]
    except PySparkException:
        return None
    return shown(example.text, binary=isinstance(kinds[0], BinaryType)) if len(kinds) == 1 else None


def _values(spark: SparkSession, some: Sequence[tuple[Example, str]]) -> list[str | None]:
    """The values of some examples in one query; if it fails, of each half."""
    items = ", ".join(f"{text} AS c{n}" for n, (_, text) in enumerate(some))
    try:
        rows = spark.sql(f"SELECT {items}").collect()
    except PySparkException:
        half = len(some) // 2
        return _values(spark, some[:half]) + _values(spark, some[half:]) if half else [None]
    return list(rows[0]) if len(rows) == 1 else [None] * len(some)


def chunks(items: Sequence[Any], size: int = CHUNK) -> Iterator[Sequence[Any]]:
    return (items[n : n + size] for n in range(0, len(items), size))


def run(spark: SparkSession, folder: Path, sql: str, rows: Sequence[dict[str, Any]], outputs: int) -> list[list[Any]]:
    """The results of each of the pumps p0, p1, …."""
    got: list[list[Any]] = [[] for _ in range(outputs)]
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    for n, into in enumerate(got):
        pipeline.sink(f"o{n}", lambda batch, into=into: into.extend(batch.table().to_pylist() if batch.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    with rt.writer("one", home=folder / "home") as log:
        log.insert(list(rows))
        log.end()
    pipeline.run_available(folder / "check")
    return got


def taken(stream: str, found: Sequence[tuple[Example, str, str]]) -> list[tuple[Example, str, str]]:
    """The examples that ``check`` accepts; the others have to be known exceptions."""
    kept = []
    for example, text, value in found:
        problems = [problem for problem in rt.check(f"{stream} SELECT STREAM {text} AS r FROM one")
                    if not problem.warns]  # fmt: skip
        codes = {problem.code for problem in problems}
        assert codes <= set(REFUSED), f"{example}: {problems[0]}"
        if not codes:
            kept.append((example, text, value))
    return kept


def test_examples_of_values_give_the_values_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    own = derive(spark)
    given = [one for one in examples(own) if not one.source and not any(name in one.text.lower() for name in CLOCK)]
    found = of_spark(own, given)
    assert len(found) > 800
    kept = taken("CREATE STREAM one (v INT);", found)
    assert len(kept) > 780
    groups = list(chunks(kept))
    projected = [", ".join(f"{text} AS c{n}" for n, (_, text, _) in enumerate(group)) for group in groups]
    having = [" AND ".join(f"{text} = {literal(value)}" for _, text, value in group) for group in groups]
    sql = "CREATE STREAM one (v INT);" + "".join(
        f"CREATE PUMP p{n} AS INSERT INTO o{n} SELECT STREAM {items} FROM one;" for n, items in enumerate(projected)
    )
    sql += "".join(
        f"CREATE PUMP h{n} AS INSERT INTO o{n + len(groups)} SELECT STREAM COUNT(*) AS c FROM one"
        f" GROUP BY FLOOR(one.ROWTIME TO HOUR) HAVING {condition};"
        for n, condition in enumerate(having)
    )
    got = run(spark, tmp_path, sql, [{"v": 1, "rowtime": START}], 2 * len(groups))
    for n, group in enumerate(groups):
        [row] = got[n]
        wrong = {text: (row[f"c{k}"], value) for k, (_, text, value) in enumerate(group) if row[f"c{k}"] != value}
        assert not wrong
        assert [counted["c"] for counted in got[n + len(groups)]] == [1], [example.text for example, _, _ in group]
