"""The entry of a tick: what the journal records of it, beside what it goes on carrying of those before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyspark

from rowtime.operators.contract import Delta
from rowtime.plan.holders import since
from rowtime.plan.program import Program
from rowtime.runtime.held import held
from rowtime.runtime.intake import Taken
from rowtime.runtime.narrow_tables import LIMITS, Narrowed
from rowtime.runtime.tick import RunningTick
from rowtime.state import refused_files
from rowtime.state.journal import PAUSED, Entry

SPARKS: Final = "sparks"


def entry_of(  # noqa: PLR0913 - a tick, and what it follows
    running: RunningTick,
    program: Program,
    before: Entry,
    notes: Mapping[str, Any],
    deltas: Mapping[str, Delta],
    at: int,
) -> dict[str, Any]:
    """Return the entry of a tick that ends ``at`` (µs UTC); ``notes``: of its sources, ``deltas``: of its operators."""
    entry = running.entry()
    totals = {name: Counter(counts) for name, counts in before["totals"].items()}
    for name, counts in running.ledger.items():
        totals.setdefault(name, Counter()).update(counts)
    return {
        **entry,
        "at": at,
        "cuts": before.get("cuts", 0),
        "plans": before.get("plans", []),
        **({PAUSED: before[PAUSED]} if before.get(PAUSED) else {}),
        "sources": notes,
        SPARKS: _sparks(before, running.number),
        refused_files.KEY: refused_files.counted(before, running.number, entry["refused"], entry["sums"]),
        "totals": {name: dict(counts) for name, counts in totals.items()},
        "clocks": {name: dict(delta.clocks) for name, delta in deltas.items()},
        "held": running.held or held(running, program.operators, entry["segments"]),
        "since": since(program, before, entry["segments"], deltas, at),
    }


def _sparks(before: Entry, tick: int) -> Sequence[Sequence[Any]]:
    """Return which version of Spark has written the ticks since which; an older version of rowtime did not say."""
    sparks = before.get(SPARKS, [] if before["tick"] < 0 else [[0, ""]])
    return sparks if sparks and sparks[-1][1] == pyspark.__version__ else [*sparks, [tick, pyspark.__version__]]


def cuts_input(before: Entry, taken: Mapping[str, Taken], limits: Narrowed) -> bool:
    """Return True if a tick's input cannot be read again as one with the earlier input.

    This is so if a bound was set on all writers in between; if a writer joins, because it starts at the clock; or if a
    database table's limits change.
    """
    joined = any(part.joined and name in before["sources"] for name, part in taken.items())
    relimited = before["tick"] >= 0 and before.get(LIMITS, {}) != limits
    return joined or relimited or bool(before.get("bounded", False))
