"""Shared by the tests of sinks with a schema registry: the pipeline, its rows, a crash, and foreign schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.errors import Refused
from rowtime.runtime.engine import Engine
from tests.deaths import Died, dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.broker import Broker

COLUMNS = "name STRING, n INT"
TARGET = """CREATE STREAM a (name STRING, n INT);
CREATE STREAM o ({columns}) USING kafka OPTIONS (
  kafka.bootstrap.servers '{servers}', topic '{topic}', value.format '{form}', schema.registry.url '{registry}'{more});
CREATE PUMP p AS INSERT INTO o SELECT STREAM {query} FROM a;"""


def pumped(
    form: str, spark: SparkSession, home: Path, broker: Broker, topic: str,
    columns: str = COLUMNS, query: str = "name, n", registry: str = "mock://test", more: str = "",
) -> rt.Pipeline:  # fmt: skip
    """The stream a; its rows go into a topic in this format."""
    given = {"form": form, "columns": columns, "query": query, "registry": registry, "more": more}
    return rt.Pipeline(spark, home=home).sql(TARGET.format(servers=broker.bootstrap, topic=topic, **given))


def insert(home: Path, *rows: tuple[str | None, int | None], second: int = 0) -> None:
    """Rows of a, one per second."""
    with rt.writer("a", home=home, writer="w") as writer:
        writer.insert(
            [{"name": a, "n": n, "rowtime": f"2024-01-01 00:00:{second + i:02d}"} for i, (a, n) in enumerate(rows)]
        )


def die(made: rt.Pipeline, checkpoint: Path, where: str) -> None:
    """A run that ends in the middle of its tick."""
    begun = Engine.start

    def start(engine: Engine) -> None:
        begun(engine)
        engine.hook = dying(where)

    Engine.start = start  # type: ignore[method-assign]
    try:
        with pytest.raises(Died):
            made.run_available(checkpoint)
    finally:
        Engine.start = begun  # type: ignore[method-assign]


def seconds_written_with_the_schema_of_others(
    pumped: Callable[..., rt.Pipeline], home: Path, said: str, taken: str, repaired: str
) -> tuple[int, ...]:
    """Which of three rows fit a given schema, after the script is corrected as the hint of its refusal says.

    ``said``: a part of the refusal, empty if the schema fits; ``taken``: a part of the hint; ``repaired``: the columns
    that the hint asks for, with its groups. ``pumped``: the pipeline with columns and a query.
    """
    columns = COLUMNS
    if said:
        with pytest.raises(Refused) as refused:
            pumped().run_available(home / "refused")
        (problem,) = refused.value.problems
        assert (problem.code, said in problem.message) == ("R549", True), problem
        assert problem.place is not None
        assert problem.place.text[problem.place.column - 1 :].startswith("o (")
        found = re.search(taken, problem.hint)
        assert found is not None, problem.hint
        columns = repaired.format(*found.groups())
    values: dict[str, Any] = {"name": "name", "n": "n = 1" if "BOOLEAN" in columns else "n", "kind": "'k'"}
    query = ", ".join(values[part.split()[0]] for part in columns.split(", "))
    made = pumped(columns, query)
    made.run_available(home / "check")
    insert(home, ("x", 1), (None, 2) if "name STRING NOT NULL" in columns else ("y", 2), ("z", 3))
    ledger = made.run_available(home / "check").ledger
    if said.startswith("the field name"):
        assert ledger["p"]["MALFORMED"] == 1  # refused at the gate of the pump: no record can hold it
    return (0, 2) if "NOT NULL, n" in columns else (0, 1, 2)
