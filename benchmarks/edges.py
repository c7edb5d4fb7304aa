"""Events from edges against the same events from intervals: a million edges per tick, or half a million events.

The query emits the events as intervals, so the difference is the cost of pairing their edges. The long form also
measures the snapshot count over both, without a requirement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.lifetimes import COUNT, Intervals, Query, rows_of, run_rowtime, same
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from benchmarks.engines import Engines

EDGES = 1_000_000  # a tick
MOST = 2.0
SHAPES = ("intervals", "edges")
EVENTS = Query("SELECT STREAM k, v FROM a", "", "k BIGINT, v BIGINT", ("a",), 1_000)


def measure(engines: Engines, *, short: bool) -> Result:
    ticks, rounds = (2, 1) if short else (5, 5)
    queries = {"events": EVENTS} | ({} if short else {"snapshot": COUNT})
    lines, answers = {}, {}
    for name, query in queries.items():
        lines[name], answers[name] = _measured(engines, query, ticks, rounds)
    ratios = [against("intervals", lines["events"]["ratio"], MOST, most=True)]
    return {
        "edges_a_tick": EDGES,
        "ticks": ticks,
        "rounds": rounds,
        "queries": lines,
        "answers": answers,
        "ratios": ratios,
    }


def _measured(engines: Engines, query: Query, ticks: int, rounds: int) -> tuple[Result, str]:
    """Medians in turns after a warm-up over few events; both have to give the same rows.

    Rows are compared at the end, because comparing leaves hundreds of megabytes in the allocators of the process.
    """
    few, many = (Intervals("a", 1, query.keys, rows, files=ticks) for rows in (10_000, EDGES // 2))
    spent: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    for number in range(rounds + 1):
        outputs = []
        for shape, times in spent.items():
            took, each, output = run_rowtime(engines, query, {"a": many if number else few}, shape)
            outputs.append(output)
            times.extend([took] if number else [])
    answer = same(*(rows_of(output, query) for output in outputs))
    medians = {shape: middle(times) for shape, times in spent.items()}
    ratio = round(medians["edges"] / medians["intervals"], 2)
    return {"median_ms": medians, "last_edges_ticks_ms": [round(ms) for ms in each], "ratio": ratio}, answer


EDGES_INTERVALS = Measurement("edges", "events from edges, a million a tick, against events from intervals", measure)
