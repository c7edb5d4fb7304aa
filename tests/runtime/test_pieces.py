"""A gate that is judged by the pieces of several tasks decides as one that has all rows."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowtime.core.clock import strongest
from rowtime.core.columns import POSITION, WRITER
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.runtime.clock_pass import clock_pass, pieces
from rowtime.runtime.clock_pass.gate_items import filled
from rowtime.runtime.clock_pass.pieces import Calm, InterleavedError, MisjudgedError, folded, judged_apart, starts_of

ROWS = 600
PLACE = [(WRITER, "ascending"), (POSITION, "ascending")]


def items(chance: random.Random, disorder: int, jump: float) -> pa.Table:
    """Return rows of two writers, each in its order."""
    rows = []
    for writer in ("x", "y"):
        at = 0
        for position in range(ROWS):
            at += 1 + (chance.randrange(-300, 500) if chance.random() < jump else 0)
            time = None if chance.random() < 0.002 else at + chance.randrange(-disorder, disorder + 1)
            rows.append((writer, position, time))
    writers, positions, times = zip(*rows, strict=True)
    numbers = {POSITION: pa.array(positions, pa.int64()), "t": pa.array(times, pa.int64())}
    return filled(pa.table({WRITER: pa.array(writers, pa.string()), **numbers}))


def parts_of(chance: random.Random, table: pa.Table, many: int) -> list[pa.Table]:
    """Return parts of consecutive rows of each writer."""
    cuts = {w: sorted(chance.randrange(ROWS) for _ in range(many - 1)) for w in ("x", "y")}

    def owner(writer: str, position: int) -> int:
        return sum(position >= cut for cut in cuts[writer])

    owners = [owner(w, p) for w, p in zip(table[WRITER].to_pylist(), table[POSITION].to_pylist(), strict=True)]
    return [table.filter(pa.array([of == n for of in owners])) for n in range(many)]


def by_pieces(gate: Gate, parts: list[pa.Table]) -> tuple[Verdict, int]:
    """Return the verdict, and how often the parts were judged."""
    starts = [dict[str, int]() for _ in parts]
    for times in (1, 2):
        gates = [replace(gate, marks=strongest(gate.marks, start)) for start in starts]
        judged = [judged_apart(part, of)[1] for part, of in zip(parts, gates, strict=True)]
        try:
            return folded(gate, judged), times
        except MisjudgedError:
            starts = starts_of(judged)
    raise AssertionError("the marks before the parts are known")


def check(seed: int, reason: str) -> None:
    chance = random.Random(f"{seed} {reason}")
    disorder, within = chance.choice([(0, 0), (3, 0), (3, 5), (20, 10), (20, 40)])
    table = items(chance, disorder, chance.choice([0.0, 0.02]))
    bounds = [("x", 100, 90), ("y", 300, 320)] if seed % 3 == 0 else []
    gate = Gate("t", within, reason, {"x": 2} if seed % 2 else {}, bounds, floors={"y": 40} if seed % 4 == 0 else {})
    whole = clock_pass.judge(None, gate, table)  # type: ignore[arg-type] # it is given the times
    for many in (1, 2, 5):
        verdict, times = by_pieces(gate, parts_of(chance, table, many))
        assert verdict == replace(whole, refused=verdict.refused), (many, times)
        assert listed(verdict) == listed(whole)
        assert times == 1 or many > 1


def listed(verdict: Verdict) -> list[dict[str, Any]]:
    return [] if verdict.refused is None else verdict.refused.sort_by(PLACE).to_pylist()


@pytest.fixture(autouse=True)
def _pieces_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "ROWS", 32)


@pytest.mark.parametrize("reason", ["LATE", "OUT_OF_ORDER"])
@pytest.mark.parametrize("seed", range(12))
def test_pieces_decide_as_one_judgement(seed: int, reason: str) -> None:
    check(seed, reason)


def test_rows_that_are_accepted_in_any_case_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_is_accepted", lambda *_given: True)
    failed = 0
    for seed in range(12):
        try:
            check(seed, "LATE")
        except AssertionError:
            failed += 1
    assert failed


def test_rows_between_those_of_another_task_have_no_order() -> None:
    table, gate = items(random.Random(5), 3, 0.02), Gate("t", 5, "LATE", {})
    first = pa.array([position % 100 < 50 for position in table[POSITION].to_pylist()])
    halves = table.filter(first), table.filter(pc.invert(first))
    with pytest.raises(InterleavedError):
        folded(gate, [judged_apart(half, gate)[1] for half in halves])


def test_dense_rows_travel_as_facts() -> None:
    times = pa.array(range(100_000), pa.int64())
    table = filled(pa.table({WRITER: pa.repeat(pa.scalar("x"), 100_000), POSITION: times, "t": times}))
    _, judged = judged_apart(table, Gate("t", 60_000_000, "LATE", {}))
    assert all(isinstance(piece, Calm) for piece in judged.items)
    assert sum(piece.rows for piece in judged.items if isinstance(piece, Calm)) == 100_000
