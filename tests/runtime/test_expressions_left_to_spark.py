"""A translated expression that meets a value for which only Spark knows the result is Catalyst's from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import rowtime as rt
from rowtime.frames import translated as translated_module
from rowtime.frames.values import Scope, Value
from rowtime.frames.words import Untranslated
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN: Final = 1_704_067_200_000_000
PLAIN: Final = ["street 1", "12", "x", None]
TICKS: Final[Sequence[Sequence[str | None]]] = (PLAIN, PLAIN, [*PLAIN, "straße"], PLAIN, ["ﬁne", "İ"], PLAIN)
STREAM: Final = """CREATE STREAM a (at TIMESTAMP, k STRING)
USING parquet OPTIONS (path '{source}', rowtime.column 'at');"""
QUERIES: Final[Mapping[str, str]] = {
    "rows": "SELECT STREAM UPPER(k) AS u FROM a WHERE k IS NOT NULL",
    "a condition": "SELECT STREAM k AS u FROM a WHERE LENGTH(UPPER(k)) > 6",
    "keys": "SELECT STREAM UPPER(k) AS u, COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR), UPPER(k)",
    "an aggregate": "SELECT STREAM MAX(UPPER(k)) AS u FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)",
    "kept rows": "SELECT STREAM COLLECT_LIST(UPPER(k)) AS u FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)",
    "a join": "SELECT STREAM UPPER(a.k) || b.k AS u FROM a JOIN a AS b ON UPPER(a.k) = UPPER(b.k) "
    "AND a.ROWTIME = b.ROWTIME",
    "over": "SELECT STREAM MAX(UPPER(k)) OVER (ROWS 2 PRECEDING) AS u FROM a",
}  # fmt: skip


def write(folder: Path, ticks: Sequence[Sequence[str | None]]) -> None:
    folder.mkdir()
    for number, texts in enumerate(ticks):
        at = pa.array([BEGIN + (number * 100 + n) * 1_000_000 for n in range(len(texts))], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"at": at, "k": pa.array(texts, pa.string())}), folder / f"{number}.parquet")


def run(
    spark: SparkSession, place: Path, source: Path, sql: str, parts: int, files: int = 1
) -> tuple[list[Any], list[int], Any]:
    """The rows, the attempts of each tick, and the ledger; with 0 parts on the driver."""
    pipeline = rt.Pipeline(spark, home=place / "home", small_ticks="driver")
    pipeline.sql(f"{STREAM.format(source=source)}{sql};")
    rows: list[Any] = []
    pipeline.sink("result", lambda batch: rows.extend(batch.table().to_pylist()))
    engine = pipeline._engine(place / "check", rt.Limits(files=files), ends=True)
    engine.tasks = Tasks(InProcess(parts)) if parts else None
    attempts: list[int] = []
    plain = engine._ticked

    def counted() -> Any:
        attempts.append(engine.entry["tick"])
        return plain()

    engine._ticked = counted  # type: ignore[method-assign]
    while engine.tick() is not None:
        pass
    totals = engine.entry["totals"]
    engine.stop()
    return rows, [attempts.count(n) for n in range(-1, max(attempts))], totals


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("parts", [0, 1, 3], ids=["on the driver", "one task", "three parts"])
def test_the_values_are_those_of_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parts: int
) -> None:
    write(tmp_path / "in", TICKS)
    sql, translated = QUERIES[name], Scope.value
    rows, attempts, totals = run(spark, tmp_path / "run", tmp_path / "in", sql, parts, files=2 if parts > 1 else 1)

    def without_upper(self: Scope, node: exp.Expr) -> Value:
        if isinstance(node, exp.Upper):
            raise Untranslated("UPPER")
        return translated(self, node)

    monkeypatch.setattr(Scope, "value", without_upper)
    translated_module._scope.cache_clear()
    assert rows == run(spark, tmp_path / "spark", tmp_path / "in", sql, 0)[0]
    assert rows
    assert "MALFORMED" not in str(totals)
    assert attempts[0] == 1
    assert 2 <= max(attempts) <= 8  # a further one for each of the expressions


def test_it_is_tried_once(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", TICKS)
    for parts in (0, 1):
        rows, attempts, _ = run(spark, tmp_path / str(parts), tmp_path / "in", QUERIES["rows"], parts)
        assert [row["u"] for row in rows if row["u"] is not None][6:10] == ["STREET 1", "12", "X", "STRASSE"]
        assert [row["u"] for row in rows][-5:-3] == ["FINE", "İ"]
        assert attempts[:6] == [1, 1, 2, 1, 1, 1]


def test_another_run_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", TICKS)
    for n in range(2):
        assert run(spark, tmp_path / str(n), tmp_path / "in", QUERIES["rows"], 0)[1][:6] == [1, 1, 2, 1, 1, 1]


def test_a_text_may_look_like_the_message(spark: SparkSession, tmp_path: Path) -> None:
    odd = "'left to Spark 01234567: x' to BOOL"
    write(tmp_path / "in", [["1", "2"], ["3", odd, "4"], ["5"]])
    for parts in (0, 1):
        sql = "SELECT STREAM CAST(k AS INT) AS u FROM a"
        rows, _, totals = run(spark, tmp_path / str(parts), tmp_path / "in", sql, parts)
        assert [row["u"] for row in rows] == [1, 2, 3, 4, 5]
        assert sum(of.get("MALFORMED", 0) for of in totals.values()) == 1
