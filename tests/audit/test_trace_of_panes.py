"""The trace of a fire of a pane: the rows of the pane that had arrived by then, and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.audit.trace import trace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = """
    CREATE STREAM s (k INT, at TIMESTAMP) EVENT TIME (at, MINIMUM GAP INTERVAL '0' SECOND);
    CREATE VIEW panes AS SELECT STREAM PANE_START AS start, PANE_INDEX AS i, COUNT(*) AS n FROM s
      GROUP BY PANES(at, DURATION INTERVAL '10' SECOND, DISCARD AGE INTERVAL '20' SECOND) EMIT CHANGES;
    CREATE PUMP p AS INSERT INTO out SELECT STREAM * FROM panes;
"""
TIMES = [1, 2, 12, 3, 25, 4, 8, 26, 7]
"""k is the position.

Of the first pane, 3 is late, 4 is behind the discard age, 8 is late again, 7 comes after the last fire.
"""


def at(second: int) -> str:
    return f"2024-01-01 00:00:{second:02}"


@pytest.mark.slow
def test_it_named_rows_of_other_panes_later_ones_and_those_that_were_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    def made() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(SQL).sink("out", lambda _: None)

    for stream in made().compile().defines:
        made().home.define(stream.name, stream.as_json())
    with rt.writer("s", home=tmp_path / "home") as log:
        log.insert([{"k": k, "at": at(second)} for k, second in enumerate(TIMES)])
    query = made().run_available(tmp_path / "check")
    assert query.ledger["panes"] == {"in": 9, "accepted": 8, "LATE": 1}
    for row, rows in (("i = 1 AND change = 'INSERT'", [0, 1, 3]), ("i = 2", [0, 1, 3, 6])):
        found = trace(made(), tmp_path / "check", row, sink="p")
        assert sorted(item.columns["k"] for item in found.of("s") if item.kind == "row") == rows, row
