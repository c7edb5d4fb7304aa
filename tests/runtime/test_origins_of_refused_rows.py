"""Rows that are refused after a merge are reported with their writer and position before it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.columns import DUE, HELD_TIME
from rowtime.core.time import END
from rowtime.operators.contract import Shape
from rowtime.operators.contract.state import Kept
from rowtime.operators.gates.permit_gate import PermitGate
from rowtime.operators.order.merge import Merge
from rowtime.runtime.engine import Engine
from rowtime.runtime.session import derive
from rowtime.testing.transcripts import ScriptItem
from tests.laws.checking import outcome
from tests.laws.pipelines import HALF, ORIGIN, Law

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATES = """
    CREATE STREAM a (n INT, t TIMESTAMP) EVENT TIME (t);
    CREATE STREAM permits (p INT);
    CREATE VIEW odd AS SELECT STREAM n, t FROM a WHERE n % 2 = 1;
    CREATE VIEW direct AS SELECT STREAM * FROM STREAM(GATE(TABLE a, TABLE permits)) WITH UNBOUNDED STATE;
    CREATE VIEW viewed AS SELECT STREAM * FROM STREAM(GATE(TABLE odd, TABLE permits)) WITH UNBOUNDED STATE;
    CREATE PUMP p1 AS INSERT INTO refused SELECT STREAM 'direct' AS gate, n, reason, writer, position FROM direct.rejected;
    CREATE PUMP p2 AS INSERT INTO others SELECT STREAM 'viewed' AS gate, n, reason, writer, position FROM viewed.rejected;
"""  # noqa: E501


@pytest.mark.slow
def test_a_gate_above_an_event_time_reported_the_merged_number_and_no_writer(
    spark: SparkSession, tmp_path: Path
) -> None:
    found: set[tuple[Any, ...]] = set()

    def run(writes: dict[tuple[str, str], list[int]], *, end: bool = False) -> None:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(GATES)
        for name in ("refused", "others"):
            pipeline.sink(name, lambda batch: found.update(_told(batch)))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        for (stream, writer), seconds in writes.items():
            with rt.writer(stream, home=tmp_path / "home", writer=writer) as log:
                log.insert([_row(stream, n, f"2024-01-01 10:00:{n:02}") for n in seconds])
                if end:
                    log.set_rowtime_bound("end")
        pipeline.run_available(tmp_path / "check")

    run({("a", "x"): [1, 3, 5], ("a", "y"): [2, 4], ("permits", "p"): [1]})
    run({("a", "x"): [7, 9], ("a", "y"): [8], ("permits", "p"): []}, end=True)
    assert found == {
        *(("direct", n, "NO_PERMIT", "x", at) for at, n in enumerate((1, 3, 5, 7, 9)) if n > 1),
        *(("direct", n, "NO_PERMIT", "y", at) for at, n in enumerate((2, 4, 8))),
        *(("viewed", n, "NO_PERMIT", "x", at) for at, n in enumerate((1, 3, 5, 7, 9)) if n > 1),
    }


def _row(stream: str, n: int, at: str) -> dict[str, object]:
    return {"p": 1, "rowtime": at} if stream == "permits" else {"n": n, "t": at, "rowtime": at}


def _told(batch: rt.Batch) -> set[tuple[Any, ...]]:
    names = ("gate", "n", "reason", "writer", "position")
    return {tuple(row[name] for name in names) for row in (batch.table().to_pylist() if batch.count else [])}


MET = (
    "CREATE VIEW x EVENT TIME (ev, MINIMUM GAP INTERVAL '0' SECOND) AS SELECT STREAM n, v, ev FROM a; "
    "CREATE VIEW y EVENT TIME (ev, MINIMUM GAP INTERVAL '0' SECOND) AS SELECT STREAM n, v, ev FROM b; "
    "CREATE VIEW u AS SELECT STREAM n, v, ev FROM x WHERE v <> 3 UNION ALL SELECT STREAM * FROM y; "
    "CREATE VIEW t EVENT TIME (later, MODE INPUT_WATERMARK) "
    "AS SELECT STREAM *, ev + INTERVAL '0.5' SECOND AS later FROM u; "
)
PANES = "SELECT STREAM v, COUNT(*) AS c FROM {} GROUP BY PANES({}, DURATION INTERVAL '1' SECOND), v"
REFUSING = {
    "panes": ({"LATE", "NULL_ROWTIME"}, MET + PANES.format("u", "ev")),
    "panes of a filter": ({"LATE", "NULL_ROWTIME"}, MET + PANES.format("t WHERE v < 3", "later")),
    "a gate": (
        {"NO_PERMIT", "NULL_ROWTIME"},
        MET + "SELECT STREAM n FROM STREAM(GATE(TABLE t, TABLE b, v)) WITH UNBOUNDED STATE",
    ),
    "an event time": (
        {"LATE", "EARLY", "NULL_ROWTIME"},
        MET + "CREATE VIEW w EVENT TIME (made, EARLY BEYOND INTERVAL '3' SECOND, MINIMUM GAP INTERVAL '0' SECOND) AS "
        "SELECT STREAM n, v, ev + v * INTERVAL '1' SECOND AS made FROM t; " + PANES.format("w", "made"),
    ),
    "an event time behind a delay and a gate": (
        {"LATE", "NO_PERMIT", "NULL_ROWTIME"},
        MET + "CREATE VIEW d AS SELECT STREAM * FROM STREAM(DELAY(TABLE u, INTERVAL '1' SECOND)); "
        "CREATE VIEW g AS SELECT STREAM * FROM STREAM(GATE(TABLE d, TABLE b, v)) WITH UNBOUNDED STATE; "
        "CREATE VIEW w EVENT TIME (ev, MINIMUM GAP INTERVAL '0' SECOND) AS SELECT STREAM n, v, ev FROM g; "
        + PANES.format("w", "ev"),
    ),
}


@pytest.mark.parametrize(
    "gate", [pytest.param(one, marks=[] if one == "panes of a filter" else [pytest.mark.slow]) for one in REFUSING]
)
def test_rows_that_waited_where_event_times_meet_were_refused_without_a_writer(spark: SparkSession, gate: str) -> None:
    reasons, sql = REFUSING[gate]
    law, session, made = Law(gate, (), sql, lambda _: ({}, [])), derive(spark), _items(5)
    wrote = {item.number: item.writer for item in made}
    told = set()
    for cut, restart in ([len(made)], False), ([7, 13, 14, 22, len(made)], True):
        refused = outcome(session, law, made, cut, restart=restart).refused
        assert {row["reason"] for row in refused} == reasons
        assert {(row["writer"], row["position"]) for row in refused} == {(wrote[row["n"]], row["n"]) for row in refused}
        told.add(frozenset((row["reason"], row["writer"], row["position"]) for row in refused))
    assert len(told) == 1, "the cut decides"


@pytest.mark.slow
def test_rows_kept_before_a_gate_needed_them_have_no_writer_and_continue(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons, sql = REFUSING["an event time behind a delay and a gate"]
    law, made = Law("old", (), sql, lambda _: ({}, [])), _items(5)
    wrote = {item.number: item.writer for item in made}
    new = outcome(derive(spark), law, made, [len(made)])

    def before(node: Merge | PermitGate, time: str, shape: Shape) -> Kept:
        shape = shape.without_origin() if len(started) < 2 else shape
        return Kept(time, (*shape.names, *shape.internals))

    started: list[int] = []
    first = Engine.__init__
    monkeypatch.setattr(Engine, "__init__", lambda self, *a, **k: (started.append(1), first(self, *a, **k))[1])
    monkeypatch.setattr(Merge, "_state", property(lambda self: before(self, HELD_TIME, self._below)))
    monkeypatch.setattr(PermitGate, "_state", property(lambda self: before(self, DUE, self.emits())))
    old = outcome(derive(spark), law, made, [20, len(made)], restart=True)
    assert len(started) == 2
    assert old.rows
    assert [row for _, row in old.rows] == [row for _, row in new.rows]
    assert {(row["n"], row["reason"]) for row in old.refused} == {(row["n"], row["reason"]) for row in new.refused}
    waited = [row for row in old.refused if row["writer"] == ""]
    assert waited
    assert all(row["position"] is None for row in waited)
    others = [row for row in old.refused if row not in waited]
    assert {row["reason"] for row in others} == reasons
    assert {(row["writer"], row["position"]) for row in others} == {(wrote[row["n"]], row["n"]) for row in others}


def _items(seed: int) -> list[ScriptItem]:
    """Rows of two streams with two writers each, whose event times go forward and back; position is the number."""
    chance, made = random.Random(seed), list[ScriptItem]()
    for n in range(1, 31):
        stream, writer = chance.choice((("a", "w"), ("a", "x"), ("b", "y"), ("b", "z")))
        ev = None if chance.random() < 0.1 else ORIGIN + max(0, n + chance.randint(-12, 3)) * HALF
        values = {"n": n, "v": chance.choice((0, 0, 1, 2, 3)), "ev": ev, "rowtime": ORIGIN + n * HALF}
        made.append(ScriptItem(n, stream, writer, values, None))
    ends = [("a", "w"), ("a", "x"), ("b", "y"), ("b", "z")]
    return [*made, *(ScriptItem(31 + n, *end, None, END) for n, end in enumerate(ends))]
