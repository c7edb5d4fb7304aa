"""The cases of `transcripts/streams`, with one tick per item, in one tick, and with a random cut."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import BEGINNING, END
from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from rowtime.testing import runner
from rowtime.testing.runner import Outcome, cuts, play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests import streams_queries as queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

FOLDER = Path(__file__).parent / "transcripts" / "streams"
CASES = {path.name[:3]: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
TIMINGS = {"onComplete": "COMPLETE", "late": "LATE"}
Case = Mapping[str, Any]


def _micros(t: float) -> int:
    return round(t * 1_000_000)


def _item(number: int, entry: Mapping[str, Any]) -> ScriptItem:
    stream = f"s{entry['stream']}" if "stream" in entry else "s"
    if entry["kind"] == "tuple":
        row = {"n": number, "t": _micros(entry["t"]), "v": str(entry.get("v", "")), "part": entry.get("part")}
        return ScriptItem(number, stream, "main", {**row, "rowtime": number * 1_000_000}, None)
    return ScriptItem(number, stream, "main", None, _micros(entry["t"]) if entry["kind"] == "watermark" else END)


def _transcript(name: str, sql: str, *, ends: bool = False) -> Transcript:
    items = [_item(number, entry) for number, entry in enumerate(CASES[name]["input"], 1)]
    if ends:
        items.append(ScriptItem(len(items) + 1, "s", "main", None, END))
    return Transcript(name, name, sql, tuple(items), (), "exact", frozenset())


def _played(spark: SparkSession, case: Transcript) -> Iterator[tuple[Sequence[int], Outcome]]:
    for _, cut in cuts(case):
        yield cut, play(derive(spark), case, cut)


def _cause(case: Transcript, rowtime: int) -> int:
    """The item whose bound first reaches a rowtime."""
    return next(item.number for item in case.items if item.at is not None and item.at >= rowtime)


def _fires(case: Transcript, found: Outcome) -> list[tuple[Any, ...]]:
    """The fires, in the form of the files: by the item that caused them, then by pane and key."""
    out = []
    for tick, row in found.rows:
        after = _cause(case, _at(row["rowtime"]))
        assert found.ends[tick] >= after, "a fire came before the bound that causes it"
        assert tick == 0 or found.ends[tick - 1] < after, "a fire came later than its tick"
        pane, part = (row["start"], row["end"]), row.get("part")
        out.append((after, pane, part, row["timing"], row["index"], row["times"], row["vals"]))
    assert [row["rowtime"] for _, row in found.rows] == sorted(row["rowtime"] for _, row in found.rows)
    return sorted(out, key=lambda fire: (fire[0], fire[1], fire[2] or 0))


def _at(value: Any) -> int:
    from rowtime.core.time import to_micros

    return to_micros(value)


def _matches(fire: tuple[Any, ...], wanted: Mapping[str, Any], *, ended: bool) -> bool:
    after, pane, part, timing, index, times, values = fire
    same = pane == tuple(map(_micros, wanted["pane"])) and timing == TIMINGS[wanted["timing"]]
    if not ended:
        same &= after == wanted["after"] and index == wanted["index"]
    if "partition" in wanted:
        same &= part == wanted["partition"]
    if "times" in wanted:
        same &= times == [_micros(t) for t in wanted["times"]]
    if "sum" in wanted:
        same &= sum(map(int, values)) == wanted["sum"]
    return same and ("values" not in wanted or values == wanted["values"])


LONGER = [pytest.param(name, marks=pytest.mark.slow) for name in ("S05", "S06", "S09", "S10", "S12")]


@pytest.mark.parametrize("name", ["S02", "S03", "S08", "S16", *LONGER])
def test_panes_fire_as_the_case_says_in_any_cut(spark: SparkSession, name: str) -> None:
    case, expected = _transcript(name, queries.PANES[name]), CASES[name]["expected"]
    triggers = [entry for entry in expected if entry.get("event", "trigger") == "trigger"]
    discarded = {entry["after"] for entry in expected if entry.get("event") == "discarded"}
    closed = {tuple(entry["pane"]) for entry in expected if entry.get("event") == "close"}
    for cut, found in _played(spark, case):
        fires = _fires(case, found)
        assert len(fires) == len(triggers), f"{cut}: {fires}"
        for fire, wanted in zip(fires, triggers, strict=True):
            assert _matches(fire, wanted, ended=name == "S16"), f"{cut}: {fire} {wanted}"
        assert {row["n"] for row in found.refused} == discarded
        assert {row["reason"] for row in found.refused} <= {"LATE"}
        if name == "S16" or closed >= {tuple(entry["pane"]) for entry in triggers}:
            assert not found.held or name == "S05", "a closed pane is still held"


def test_a_row_is_in_every_pane_that_contains_its_time(spark: SparkSession) -> None:
    case = _transcript("S01", queries.PANES["S01"], ends=True)
    wanted = {_micros(e["t"]): {tuple(map(_micros, pane)) for pane in e["panes"]} for e in CASES["S01"]["expected"]}
    for _, found in _played(spark, case):
        got: dict[int, set[tuple[int, int]]] = {}
        for _, row in found.rows:
            for t in row["times"]:
                got.setdefault(t, set()).add((row["start"], row["end"]))
        assert got == wanted


def test_the_passed_bound_is_the_least_of_the_inputs(spark: SparkSession) -> None:
    case = _transcript("S13", queries.BOTH)
    for cut, found in _played(spark, case):
        reached: list[int] = []
        for t in CASES["S13"]["expected"]:
            reached.append(reached[-1] if t is None and reached else BEGINNING if t is None else _micros(t))
        # Zero is a bound like any other here; the file passes it on only after it has moved.
        got = [BEGINNING if clock <= 1_000_000 else clock for clock in found.clocks]
        assert got == [reached[upto - 1] for upto in cut]


def test_a_bound_is_sent_once_it_is_the_gap_above_the_last(spark: SparkSession) -> None:
    case, expected = _transcript("S15", queries.GENERATED), CASES["S15"]["expected"]
    for _, cut in cuts(case):
        sent = BEGINNING
        for upto, control in zip(cut, _controls(spark, case, cut), strict=True):
            passed = [e["submitted"] for e in expected[:upto] if e["submitted"] is not None]
            sent = _micros(passed[-1])
            assert (control["reached"], control["bound"]) == (_micros(expected[upto - 1]["op"]), sent)


def _controls(spark: SparkSession, case: Transcript, cut: Sequence[int]) -> Iterator[Mapping[str, int]]:
    folder, found = Path(tempfile.mkdtemp(prefix="rowtime-test-")), Outcome()
    try:
        engine = runner._engine(derive(spark), compile_script(case.sql), case, folder, found)
        for upto in cut:
            for source in engine.sources.values():
                source.upto = upto  # type: ignore[attr-defined]
            found.ends.append(upto)
            engine.tick()
            yield engine.entry["control"]["s.event_time"]
        engine.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_a_new_declaration_makes_rows_late_that_were_not(spark: SparkSession) -> None:
    before = _transcript("S17", queries.fires(queries.panes(1)))
    after = _transcript("S17", queries.BUFFERED)
    late = [e["t"] for e in CASES["S17"]["expected"] if e["late"]]
    marks = [e["watermark_after"] for e in CASES["S17"]["expected"] if e["late"]]
    for (_, direct), (_, sent) in zip(_played(spark, before), _played(spark, after), strict=True):
        assert direct.refused == []
        assert [_at(row["t"]) for row in sent.refused] == [_micros(t) for t in late]
        assert [_at(row["refused_by"]) for row in sent.refused] == [_micros(t) for t in marks]


def test_results_of_panes_are_not_late_for_the_next_window(spark: SparkSession) -> None:
    case, expected = _transcript("S18", queries.PANES["S18"]), CASES["S18"]["expected"]
    for _, found in _played(spark, case):
        got = [(fire[0], fire[1][1], sum(map(int, fire[6]))) for fire in _fires(case, found)]
        assert got == [(e["after"], _micros(e["result_t"]), e["value"]) for e in expected]
    for _, found in _played(spark, _transcript("S18", queries.TWICE, ends=True)):
        assert found.refused == []
        assert [row["v"] for _, row in found.rows] == [e["value"] for e in expected]
