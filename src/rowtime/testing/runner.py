"""Runs transcripts three ways: one item per tick, all items in one tick, a random cut.

The rows, their order and the refusals have to be the same each time (semantics 3). *When* a row is emitted is checked
if the cut allows it: not before its item, and not after the end of its item's tick.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from rowtime.api.python_functions import PythonFunction, check_names, register
from rowtime.client.arrow_types import arrow_schema
from rowtime.client.rows import batch
from rowtime.core.clock import least
from rowtime.core.errors import RowtimeError
from rowtime.core.time import to_micros, to_text
from rowtime.operators.contract import Operator
from rowtime.operators.streams.stream import Stream
from rowtime.operators.streams.table import Table, tables_of
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.program import Program, compile_script
from rowtime.runtime.engine import Engine
from rowtime.runtime.presence import Presence
from rowtime.runtime.session import derive
from rowtime.runtime.sinks.callables import FunctionSink
from rowtime.runtime.sinks.contract import Batch
from rowtime.runtime.sinks.staging import Stage
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.settings import put
from rowtime.testing.scripted import ScriptedSource, with_collations
from rowtime.testing.transcripts import Expected, ScriptItem, Transcript, load
from rowtime.testing.verdicts import judge_of

Cut = Sequence[int]
RANDOM_CUTS = 1


@dataclass
class Outcome:
    """The result of a run: (tick, row) in order, refusals, the output clock after each tick, rows still held.

    ``holding``: what is held after each tick, by operator and kind.
    """

    rows: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    rejected: frozenset[tuple[int, str]] = frozenset()
    refused: list[Mapping[str, Any]] = field(default_factory=list)
    clocks: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    held: int = 0
    holding: list[Mapping[str, int]] = field(default_factory=list)


def play(  # noqa: PLR0913 - what happens besides the items, and when
    spark: SparkSession,
    case: Transcript,
    cut: Cut,
    *,
    restart: bool = False,
    given: Mapping[int, tuple[str, int]] = MappingProxyType({}),
    idle: Mapping[int, Sequence[tuple[str, str]]] = MappingProxyType({}),
) -> Outcome:
    """Run a case with ticks that end after the items ``cut``; ``restart``: a new engine for each tick.

    ``given``: bounds set manually (operator, µs), by the item of ``cut`` after which they are set. ``idle``: writers
    (stream, writer) that have been silent for too long, by the item of ``cut`` after which they are set aside.
    """
    folder = Path(tempfile.mkdtemp(prefix="rowtime-test-"))
    outcome = Outcome()
    try:
        program = compile_script(case.sql, code=PythonCode(imports=True))
        if program.problems:
            raise RowtimeError(*program.problems)
        spark = _with_functions(spark, program)
        engine = _engine(spark, program, case, folder, outcome)
        for upto in _before_returns(case.items, cut):
            for source in engine.sources.values():
                source.upto = upto  # type: ignore[attr-defined]
            outcome.ends.append(upto)
            engine.tick()
            outcome.clocks.append(_clock(engine))
            outcome.holding.append(engine.entry["held"])
            if upto in given:
                put(folder, *given[upto])
            if upto in idle:
                for writer in idle[upto]:
                    engine.presence.forget(*writer)
                outcome.ends.append(upto)
                engine.tick()
                outcome.clocks.append(_clock(engine))
                outcome.holding.append(engine.entry["held"])
                engine.presence = Presence(engine.program.operators)  # from here on nobody is silent for too long
            if restart and upto != cut[-1]:
                engine.stop()
                engine = _engine(spark, program, case, folder, outcome)
        outcome.refused = list(_rejected(engine))
        outcome.rejected = frozenset((row["position"], row["reason"]) for row in outcome.refused)
        outcome.held = sum(engine.entry["held"].values())
        engine.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _with_functions(spark: SparkSession, program: Program) -> SparkSession:
    """Return a session that has the Python functions of a script; those of one case are not seen by the next."""
    if not program.catalog.scalars:
        return spark
    session = derive(spark)
    check_names(session, program.catalog.scalars)
    register(session, {name: PythonFunction(*python) for name, python in program.catalog.python.items()})
    return session


def _before_returns(items: Sequence[ScriptItem], cut: Cut) -> list[int]:
    """Return the cut, and a cut before each item of a writer that has left in the same tick, as sources do."""
    places, left = set(cut), set[tuple[str, str]]()
    for item in items:
        who = (item.stream, item.writer)
        if who in left:
            places.add(item.number - 1)
            left.clear()
        if item.leaves:
            left.add(who)
        if item.number in places:
            left.clear()
    return sorted(places)


def _engine(spark: SparkSession, program: Program, case: Transcript, folder: Path, outcome: Outcome) -> Engine:
    place = Checkpoint(folder)

    def take(batch: Batch) -> None:
        tick = len(outcome.ends) - 1
        if batch.count and batch.first == len(outcome.rows):
            outcome.rows.extend((tick, row) for row in batch.table().to_pylist())

    sources = {stream.name: _source(stream, case) for stream in program.streams}
    stages = {sink.name: Stage(FunctionSink(take, sink.name), folder) for sink in program.sinks[-1:]}
    for sink in program.sinks[:-1]:
        stages[sink.name] = Stage(FunctionSink(lambda _batch: None, sink.name), folder)
    tables = tables_from(case, program.operators)
    engine = Engine(spark, program, place, sources, stages, tables=tables)
    engine.start()
    return engine


def tables_from(case: Transcript, operators: Iterable[Operator]) -> dict[str, Callable[[SparkSession], DataFrame]]:
    """Return functions that read the tables whose rows a case lists, by their names."""
    tables = (node for node in tables_of(operators) if node.table in case.tables)
    return {node.table: partial(_rows_of, node, case.tables[node.table]) for node in tables}


def _rows_of(node: Table, rows: Sequence[Mapping[str, Any]], spark: SparkSession) -> DataFrame:
    """Return the rows that a case lists for a table."""
    columns = [{"name": column.name, "type": column.type, "nullable": True} for column in node.columns]
    table = spark.createDataFrame(batch(rows, arrow_schema({"columns": columns}), None).columns)
    return with_collations(table, [(column.name, column.type) for column in node.columns])


def _source(node: Stream, case: Transcript) -> ScriptedSource:
    items = [item for item in case.items if item.stream == node.name]
    columns = [(column.name, column.type) for column in node.columns]
    return ScriptedSource(items, columns, case.writers.get(node.name, ()))


def _clock(engine: Engine) -> int:
    return least(engine.entry.get("clocks", {}).get(engine.program.sinks[-1].name, {}).values())


def _rejected(engine: Engine) -> Iterator[Mapping[str, Any]]:
    gates = [*(node.name for node in engine.program.operators), *engine.entry.get("totals", {})]
    for gate in dict.fromkeys(gates):  # that of a query need not be an operator
        for path in engine.checkpoint.rejected(gate, engine.entry["tick"]):
            yield from pq.read_table(path).to_pylist()


# -- judging --------------------------------------------------------------------------


def findings(case: Transcript, outcome: Outcome) -> list[str]:
    """Return the differences from the expectation; nothing if the case passes."""
    wanted = [entry for entry in case.expected if entry.row is not None]
    differences = [*_rows(case, outcome, wanted), *_times(outcome, wanted, case.order), *_bounds(case, outcome)]
    if outcome.rejected != case.rejected:
        differences.append(f"refused {sorted(outcome.rejected)}, expected {sorted(case.rejected)}")
    return differences


def _rows(case: Transcript, outcome: Outcome, wanted: Sequence[Expected]) -> Iterator[str]:
    got = [row for _, row in outcome.rows]
    expected = [entry.row or {} for entry in wanted]
    if case.order == "exact":
        same = len(got) == len(expected) and all(_alike(r, e) for r, e in zip(got, expected, strict=True))
    elif case.order == "per_step_set":
        same = len(got) == len(expected) and all(
            _matched([got[i] for i in block], [expected[i] for i in block]) for block in _blocks(wanted)
        )
    else:
        same = _matched(got, expected)
    if not same:
        yield f"rows {_shown(got)}\nexpected {_shown(expected)}"


def _blocks(wanted: Sequence[Expected]) -> Iterator[list[int]]:
    """Yield groups of rows that may come in any order: the same item and rowtime."""
    block: list[int] = []
    for index, entry in enumerate(wanted):
        key = (entry.after, (entry.row or {}).get("rowtime"))
        before = wanted[block[-1]] if block else None
        if before is not None and key != (before.after, (before.row or {}).get("rowtime")):
            yield block
            block = []
        block.append(index)
    if block:
        yield block


def _matched(got: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> bool:
    left = list(expected)
    for row in got:
        match = next((entry for entry in left if _alike(row, entry)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _alike(row: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    names = {name.lower(): value for name, value in row.items()}
    if set(names) - {"rowtime"} != set(expected) - {"rowtime"}:
        return False
    return all(_equal(names[name], value) for name, value in expected.items())


def _equal(got: Any, wanted: Any) -> bool:
    if isinstance(got, datetime) and wanted is not None:
        return to_micros(got) == to_micros(wanted)
    if isinstance(got, date) and isinstance(wanted, str):
        return got.isoformat() == wanted[:10]
    if isinstance(got, float) and wanted is not None:
        return abs(got - float(wanted)) <= 1e-9 * max(1.0, abs(got))
    if isinstance(got, Decimal) and wanted is not None:
        return got == Decimal(str(wanted))
    return bool(got == wanted)


def _times(outcome: Outcome, wanted: Sequence[Expected], order: str) -> Iterator[str]:
    """Check that each row with a fixed step is emitted in its item's tick."""
    if len(wanted) != len(outcome.rows):
        return
    left = list(outcome.rows)
    for index, entry in enumerate(wanted):
        at = index if order == "exact" else None
        tick, row = left[at] if at is not None else _taken(left, entry)
        if entry.after is not None and tick != _tick_of(outcome, entry.after):
            yield f"row {_shown([row])} came with item {outcome.ends[tick]}, expected after item {entry.after}"


def _taken(left: list[tuple[int, Mapping[str, Any]]], entry: Expected) -> tuple[int, Mapping[str, Any]]:
    index = next((i for i, (_, row) in enumerate(left) if _alike(row, entry.row or {})), 0)
    return left.pop(index)


def _tick_of(outcome: Outcome, item: int) -> int:
    return next(tick for tick, upto in enumerate(outcome.ends) if upto >= item)


def _bounds(case: Transcript, outcome: Outcome) -> Iterator[str]:
    for entry in case.expected:
        if entry.bound is not None and entry.after is not None:
            clock = outcome.clocks[_tick_of(outcome, entry.after)]
            if clock < entry.bound:
                yield f"the clock is {to_text(clock)} after item {entry.after}, expected {to_text(entry.bound)}"


def _shown(rows: Iterable[Mapping[str, Any]]) -> str:
    def cell(value: Any) -> str:
        return to_text(to_micros(value)) if isinstance(value, datetime) else str(value)

    return "[" + "; ".join(", ".join(f"{k}={cell(v)}" for k, v in row.items()) for row in rows) + "]"


def broken_promises(case: Mapping[str, Any], spark: SparkSession) -> list[str]:
    """Return sequences of MONOTONIC's values whose verdict differs from the file's (``promises``)."""
    broken = []
    for entry in case.get("promises") or ():
        rows = enumerate(entry["values"], 1)
        items = tuple(ScriptItem(n, "s", "main", {"rowtime": n, "x": value}, None) for n, value in rows)
        sql = "CREATE STREAM s (x BIGINT); SELECT STREAM MONOTONIC(x) AS x FROM s"
        played = play(spark, Transcript("promise", "promise", sql, items, (), "exact", frozenset()), [len(items)])
        got = "broken" if played.rejected else "kept"
        if got != entry["promise"]:
            broken.append(f"MONOTONIC over {entry['values']} is {got}, expected {entry['promise']}: {entry['why']}")
    return broken


# -- whole cases, whole folders --------------------------------------------------------


def cuts(case: Transcript, seed: int = 1) -> Iterator[tuple[str, Cut]]:
    """Yield the cuts with which a case is run."""
    count = len(case.items)
    yield "an item a tick", range(1, count + 1)
    yield "one tick", [count]
    chance = random.Random(f"{case.name}/{seed}")  # noqa: S311 - repeatable on purpose
    for number in range(1, RANDOM_CUTS + 1):
        size = chance.randint(1, max(1, count - 1))
        inner = sorted(chance.sample(range(1, count), min(size, count - 1))) if count > 1 else []
        yield f"random cut {number} {inner}", [*inner, count]


def run_case(spark: SparkSession, case: Transcript) -> list[str]:
    """Return all findings over all cuts of one case."""
    differences: list[str] = []
    for name, cut in cuts(case):
        try:
            problems = findings(case, play(spark, case, cut))
        except RowtimeError as refused:
            return [str(refused)]
        differences.extend(f"{name}: {problem}" for problem in problems)
    return differences


def run_paths(
    paths: Iterable[Path], report: Callable[[str], None] = print, spark: SparkSession | None = None
) -> tuple[int, int]:
    """Run the case files below some paths; return how many passed and how many failed."""
    from rowtime.runtime.session import new_spark  # noqa: PLC0415 - only a run needs Spark

    session = derive(spark or new_spark())
    passed = failed = 0
    files = [file for path in paths for file in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    for path in files:
        try:
            judged = judge_of(path)
            problems = judged[0](judged[1], session) if judged else run_case(session, load(path))
            problems += broken_promises(judged[1], session) if judged else []
        except RowtimeError as refused:
            problems = [str(refused)]
        passed, failed = passed + (not problems), failed + bool(problems)
        report(f"{'FAILED' if problems else 'passed'} {path}")
        for problem in problems:
            report("    " + problem.replace("\n", "\n    "))
    return passed, failed
