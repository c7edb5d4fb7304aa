"""One event or row from the future: with a guard it is EARLY; without, `waiting` names it, also if writers merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

import rowtime as rt
from rowtime.core.time import to_micros
from rowtime.plan.poisoned import Poisoned

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

START = to_micros("2024-01-01 10:00:00") // 1000  # ms
FUTURE = to_micros("2099-01-01 00:00:00") // 1000
TIMES = [START, START + 1000, FUTURE, START + 2000, START + 3000, START + 4000, START * 1000, START + 5000]
"""Milliseconds; one is of 2099, and one of the year 55969."""
STREAMS = """
    CREATE STREAM e (at BIGINT, k INT) EVENT SHAPE POINT (at) RESOLUTION MILLISECONDS BOUND EVERY 1 ROWS {guard};
    CREATE STREAM r (at BIGINT, k INT) EVENT TIME (at, RESOLUTION MILLISECONDS) {guard};
    CREATE VIEW panes AS SELECT STREAM PANE_START AS start, COUNT(*) AS n FROM r GROUP BY PANES(at, DURATION INTERVAL '1' SECOND);
    CREATE PUMP events AS INSERT INTO found SELECT STREAM k FROM e EMIT POINTS (at);
    CREATE PUMP fires AS INSERT INTO counted SELECT STREAM start, n FROM panes;
"""  # noqa: E501


def play(spark: SparkSession, home: Path, guard: str) -> tuple[rt.Query, dict[str, list[dict[str, object]]]]:
    got: dict[str, list[dict[str, object]]] = {"found": [], "counted": []}
    pipeline = rt.Pipeline(spark, home=home / "home").sql(STREAMS.format(guard=guard))
    for name, rows in got.items():
        pipeline.sink(name, lambda batch, rows=rows: rows.extend(batch.table().to_pylist() if batch.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    for name in "er":
        with rt.writer(name, home=home / "home", writer="phone") as log:
            log.insert([{"at": at, "k": k} for k, at in enumerate(TIMES)])
        with rt.writer(name, home=home / "home", writer="watch") as log:
            log.insert([{"at": START, "k": 10}, {"at": None, "k": 11}])
    return pipeline.run_available(home / "check", end=True), got


def refused(home: Path) -> set[tuple[object, ...]]:
    """Stream or view, k, reason, writer and position of each row that was refused."""
    names, found = ("k", "reason", "writer", "position"), set()
    for file in (home / "check").rglob("rejected/**/*.parquet"):
        of = next(name for name in ("e", "r.event_time", "panes") if name in file.parts)
        found |= {(of, *(row[name] for name in names)) for row in pq.read_table(file).to_pylist()}
    return found


def test_with_a_guard_it_makes_nothing_late(spark: SparkSession, tmp_path: Path) -> None:
    query, got = play(spark, tmp_path, "EARLY BEYOND INTERVAL '1' HOUR")
    assert refused(tmp_path) == {
        *(("e", k, reason, "phone", k) for k, reason in ((2, "EARLY"), (6, "NULL_ROWTIME"))),
        *(("r.event_time", k, reason, "phone", k) for k, reason in ((2, "EARLY"), (6, "NULL_ROWTIME"))),
        *((of, 11, "NULL_ROWTIME", "watch", 1) for of in ("e", "r.event_time")),
        ("panes", 10, "LATE", "watch", 0),  # a writer whose name comes after phone is behind its bound
    }
    assert query.ledger["e"] == {"in": 10, "accepted": 7, "EARLY": 1, "NULL_ROWTIME": 2}
    assert [row["n"] for row in got["counted"]] == [1] * 5
    assert not [found for found in query.waiting() if found.kind == "poisoned clock"]


def test_without_one_waiting_names_it(spark: SparkSession, tmp_path: Path) -> None:
    query, _ = play(spark, tmp_path, "")
    late = {row[0:2] for row in refused(tmp_path) if row[2] == "LATE"}
    assert late == {(of, k) for of in ("e", "panes") for k in (3, 4, 5, 7)} | {("panes", 10)}
    named = {found.operator: str(found) for found in query.waiting() if found.kind == "poisoned clock"}
    assert "row 2 of writer phone of e raised the clock of e from 2024-01-01 10:00:01 to 2099" in named["e"]
    assert "EARLY BEYOND INTERVAL '1' HOUR after the EVENT SHAPE of e" in named["e"]
    assert "row 2 of writer phone of r raised the clock of panes from 2024-01-01 10:00:01 to 2099" in named["panes"]
    assert "EVENT TIME (at, EARLY BEYOND INTERVAL '1' HOUR) of r" in named["panes"]


REGIONS = """
    CREATE STREAM a (at TIMESTAMP, k INT) EVENT TIME (at);
    CREATE STREAM b (at TIMESTAMP, k INT) EVENT TIME (at);
    CREATE STREAM m (at TIMESTAMP, k INT) EVENT TIME (at, MODE MANUAL);
    CREATE VIEW v EVENT TIME (at, MODE MANUAL) AS SELECT STREAM at, k FROM a;
    CREATE VIEW u AS SELECT STREAM * FROM a UNION ALL SELECT STREAM * FROM b;
    CREATE VIEW w EVENT TIME (later, MODE INPUT_WATERMARK) AS SELECT STREAM at, at + INTERVAL '1' SECOND AS later, k FROM a;
    CREATE VIEW met AS SELECT STREAM COUNT(*) AS n FROM u GROUP BY PANES(at, DURATION INTERVAL '1' SECOND);
    CREATE VIEW passed AS SELECT STREAM COUNT(*) AS n FROM w GROUP BY PANES(later, DURATION INTERVAL '1' SECOND);
    CREATE VIEW told AS SELECT STREAM COUNT(*) AS n FROM m GROUP BY PANES(at, DURATION INTERVAL '1' SECOND);
    CREATE VIEW viewed AS SELECT STREAM COUNT(*) AS n FROM v GROUP BY PANES(at, DURATION INTERVAL '1' SECOND);
    ALTER VIEW v SET ROWTIME BOUND TIMESTAMP '2099-01-01 00:00:00';
    SELECT STREAM n FROM met; SELECT STREAM n FROM passed; SELECT STREAM n FROM told; SELECT STREAM n FROM viewed;
"""  # noqa: E501


def test_waiting_did_not_see_it_where_bounds_come_from_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    def at(second: int, of: int = 0) -> dict[str, object]:
        return {"at": f"2024-01-01 10:00:{second:02}", "rowtime": f"2024-01-01 10:00:{second + of:02}", "k": second}

    def run(items: dict[str, list[dict[str, object]]], bounds: dict[str, str]) -> rt.Query:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(REGIONS)
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        for name, rows in items.items():
            with rt.writer(name, home=tmp_path / "home", writer="phone") as log:
                log.insert(rows)
                if name in bounds:
                    log.set_rowtime_bound(bounds[name])
        for number in range(1, 5):
            pipeline.sink("result" if number == 1 else f"result{number}", lambda _: None)
        return pipeline.run_available(tmp_path / "check")

    future = {"at": "2099-01-01 00:00:00", "rowtime": "2024-01-01 10:00:03", "k": 3}
    good = [at(n) for n in range(1, 9)]
    run({"a": [at(1), at(2), future], "b": good, "m": good}, {"m": "2099-01-01 00:00:00"})
    said = [at(n, 10) for n in range(3, 8)]
    query = run({"a": said, "b": [at(n) for n in range(12, 20)], "m": said}, dict.fromkeys("ab", "2024-01-01 10:00:30"))
    named = {found.operator: found for found in query.waiting() if isinstance(found, Poisoned)}
    for panes in ("met", "passed"):
        said_of = (
            "row 2 of writer phone of a raised the clock of {} from 2024-01-01 10:00:02 to 2099-01-01 00:00:00, and 5"
        )
        assert str(named[panes]).startswith(said_of.format(panes))
        assert "EVENT TIME (at, EARLY BEYOND INTERVAL '1' HOUR) of a, and start with a new checkpoint" in str(
            named[panes]
        )
    told = "a bound of {} raised the clock of {} from "
    assert str(named["told"]).startswith(told.format("m", "told") + "-∞")
    assert "CREATE VIEW … EVENT TIME (at, MODE MANUAL) AS SELECT STREAM * FROM m" in str(named["told"])
    assert str(named["viewed"]).startswith(told.format("v", "viewed"))
    assert "start without it and with a new checkpoint; the late rows are in viewed.rejected" in str(named["viewed"])
    assert [named[name].as_json()["position"] for name in ("met", "told")] == [2, None]
