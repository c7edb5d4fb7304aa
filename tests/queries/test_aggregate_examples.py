"""Every documented example of Spark's aggregates has the same result in rowtime as in Spark (semantics 5).

The rows of an example are a group of a stream, in their order. The expression is in the select list of a GROUP BY and
in its HAVING. Examples whose rows have the same columns are groups of one query, so each expression is also computed
over the rows of others.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import BinaryType, NullType

import rowtime as rt
from rowtime.expr.aggregates import decompose
from rowtime.expr.many_rows import is_aggregate
from rowtime.expr.monotonicity import NON_DETERMINISTIC
from rowtime.runtime.session import derive
from rowtime.sql.generate import literal
from rowtime.sql.script import parse_expression
from tests.queries.spark_examples import examples
from tests.queries.test_spark_examples import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

OTHERS = {
    "mode(col, false)": ("int -10", "Spark takes any of the values that are equally frequent, rowtime the least"),
}
"""rowtime's result where it differs from Spark's, and why; an entry that no longer differs fails the law."""

MONTHS = "interval month"
"""R189: Spark returns intervals of years and months to no client, so no group can store them."""

MOMENTS = ("corr", "covar_", "kurtosis", "regr_", "skewness", "std", "var")
"""Aggregates whose last digits depend on the order in which Spark adds partial sums (semantics 3)."""

START = datetime(2024, 1, 1, tzinfo=UTC)
CLOSE = 1e-12

Schema = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    """An expression over the rows of group ``key``, and Spark's result: the type, and the value as text."""

    key: int
    text: str
    shown: str
    value: str

    @property
    def floats(self) -> bool:
        return self.text.startswith(MOMENTS) and self.value.startswith("double ") and not self.value.endswith("NULL")

    @property
    def splits(self) -> bool:
        """True if partial results are stored, not the rows."""
        calls = [node for node in parse_expression(self.text).walk() if is_aggregate(node)]
        return all(decompose(call) is not None for call in calls)

    @property
    def expected(self) -> str:
        return OTHERS[self.text][0] if self.text in OTHERS else self.value

    @property
    def condition(self) -> str:
        if not self.floats:
            return f"({self.shown}) = {literal(self.expected)}"
        number = float(self.value.split()[1])
        return f"abs(({self.text}) - {number}D) <= {abs(number) * CLOSE}D"

    def agrees(self, value: str) -> bool:
        if not self.floats:
            return value == self.expected
        return value.startswith("double ") and math.isclose(
            float(value.split()[1]), float(self.value.split()[1]), rel_tol=CLOSE
        )


@dataclass(frozen=True)
class Table:
    """Rows with the same columns, by groups, and their examples."""

    schema: Schema
    rows: dict[int, list[dict[str, Any]]]
    cases: list[Case]

    def stream(self, name: str) -> str:
        """The stream of the rows; an interval is a text there, which a view parses."""
        declared = ", ".join(f"{column} {'STRING' if 'interval' in kind else kind}" for column, kind in self.schema)
        casts = ", ".join(f"CAST({column} AS {kind}) AS {column}" for column, kind in self.schema)
        return (
            f"CREATE STREAM {name}_rows (k INT, {declared});"
            f"CREATE VIEW {name} AS SELECT STREAM k, {casts} FROM {name}_rows;"
        )

    def given(self) -> Iterator[dict[str, Any]]:
        rows = [(key, row) for key, some in self.rows.items() for row in some]
        for n, (key, row) in enumerate(rows):
            yield {"k": key, **row, "rowtime": START + timedelta(seconds=n)}


def tables(spark: SparkSession) -> list[Table]:
    """The examples of aggregates, without those that Spark itself refuses, and those that are random."""
    texts = defaultdict(list)
    for one in examples(spark):
        if one.source and NON_DETERMINISTIC.isdisjoint(re.findall(r"\w+", one.text.upper())):
            texts[one.source].append(one.text)
    found: dict[tuple[Schema, int], Table] = {}
    for key, source in enumerate(sorted(texts)):
        rows, schema = _typed(spark, source)
        cases = [case for text in dict.fromkeys(texts[source]) if (case := _case(rows, key, text)) is not None]
        if not cases:
            continue
        stored = rows.selectExpr(*(f"CAST({n} AS STRING) AS {n}" if "interval" in kind else n for n, kind in schema))
        given = [row.asDict(recursive=True) for row in stored.collect()]
        # Functions of sketches fail over sketches of another kind, and over empty ones.
        sketches = any(kind == "binary" for _, kind in schema)
        empty = all(value is None for row in given for value in row.values())
        table = found.setdefault((schema, key if sketches or empty else -1), Table(schema, {}, []))
        table.rows[key] = given
        table.cases.extend(cases)
    return list(found.values())


def _typed(spark: SparkSession, source: str) -> tuple[DataFrame, Schema]:
    """The rows of an example; NULLs without a type are numbers, because every column of a stream has a type."""
    rows = spark.sql(f"SELECT * FROM {source}")
    schema = tuple(
        (field.name, "int" if isinstance(field.dataType, NullType) else field.dataType.simpleString())
        for field in rows.schema
    )
    return rows.selectExpr(*(f"CAST({name} AS {kind}) AS {name}" for name, kind in schema)), schema


def _case(rows: DataFrame, key: int, text: str) -> Case | None:
    try:
        binary = isinstance(rows.selectExpr(text).schema[0].dataType, BinaryType)
        [[value]] = rows.selectExpr(shown(text, binary=binary)).collect()
    except PySparkException:
        return None
    return Case(key, text, shown(text, binary=binary), value)


def queries(table: Table, stream: str) -> Iterator[tuple[list[Case], str, str]]:
    """Examples, the query that gives their values, and the one that counts their rows HAVING these values."""
    for some in ([case for case in table.cases if case.splits is way] for way in (True, False)):
        if not some:
            continue
        items = ", ".join(f"{case.shown} AS c{n}" for n, case in enumerate(some))
        ways = " OR ".join(
            f"(k = {key} AND {' AND '.join(case.condition for case in some if case.key == key)})"
            for key in dict.fromkeys(case.key for case in some)
        )
        groups = f"FROM {stream} GROUP BY FLOOR({stream}.ROWTIME TO DAY), k"
        yield some, f"SELECT STREAM k, {items} {groups}", f"SELECT STREAM k, COUNT(*) AS c {groups} HAVING {ways}"


def run(spark: SparkSession, folder: Path, given: Sequence[Table], pumps: Sequence[tuple[str, str]]) -> list[list[Any]]:
    """The results of each of the pumps ``(stream, query)``."""
    got: list[list[Any]] = [[] for _ in pumps]
    sql = "".join(table.stream(f"s{n}") for n, table in enumerate(given))
    sql += "".join(f"CREATE PUMP p{n} AS INSERT INTO o{n} {query};" for n, (_, query) in enumerate(pumps))
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    for n, into in enumerate(got):
        pipeline.sink(f"o{n}", lambda batch, into=into: into.extend(batch.table().to_pylist() if batch.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    for n, table in enumerate(given):
        with rt.writer(f"s{n}_rows", home=folder / "home") as log:
            log.insert(list(table.given()))
            log.end()
    pipeline.run_available(folder / "check")
    return got


def test_examples_of_aggregates_give_the_values_of_spark_in_groups_and_in_having(
    spark: SparkSession, tmp_path: Path
) -> None:
    found = tables(derive(spark))
    cases = [case for table in found for case in table.cases]
    assert len(cases) > 210
    assert all(any(case.text == text and case.value != value for case in cases) for text, (value, _) in OTHERS.items())
    assert all(any(case.text.startswith(name) for case in cases) for name in MOMENTS)
    kept = []
    for table in found:
        months = any(kind == MONTHS for _, kind in table.schema)
        refused = {p.code for _, *pair in queries(table, "s") for q in pair for p in rt.check(table.stream("s") + q)}
        assert ("R189" in refused) == months
        kept += [] if months else [table]
    asked = [(f"s{n}", *query) for n, table in enumerate(kept) for query in queries(table, f"s{n}")]
    got = run(spark, tmp_path, kept, [(name, query) for name, _, *pair in asked for query in pair])
    wrong = []
    for n, (_, some, _, _) in enumerate(asked):
        values = {row["k"]: row for row in got[2 * n]}
        wrong += [
            (case.text, case.expected, value)
            for number, case in enumerate(some)
            if not case.agrees(value := values[case.key][f"c{number}"])
        ]
    assert not wrong
    for n, (_, some, _, _) in enumerate(asked):
        counted = {row["k"]: row["c"] for row in got[2 * n + 1]}
        rows = {case.key: len(next(table.rows[case.key] for table in kept if case.key in table.rows)) for case in some}
        assert counted == rows, [case.text for case in some if case.key not in counted]
