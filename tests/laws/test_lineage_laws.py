"""The law of the trace: the traced rows of the streams suffice to compute the chosen row.

The oracle runs over these rows and all bounds, and nothing else.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.audit.taps import Taps
from rowtime.audit.trace import Sought, Tracing
from rowtime.core.columns import CHANGED_BY, POSITION
from rowtime.core.time import to_micros
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.streams.stream import Stream
from rowtime.plan.program import compile_script
from rowtime.runtime.engine import Engine
from rowtime.runtime.session import derive
from rowtime.runtime.sinks.callables import MemorySink
from rowtime.runtime.sinks.staging import Stage
from rowtime.state.checkpoint import Checkpoint
from rowtime.testing.runner import tables_from
from rowtime.testing.scripted import ScriptedSource
from tests.laws.lifetime_pipelines import LIFETIMES, LifetimeLaw
from tests.laws.speculation_pipelines import SPECULATION
from tests.laws.test_lifetime_laws import CUT, ENDED
from tests.oracle import feed as f

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rowtime.operators.contract import Operator

pytestmark = pytest.mark.sampled(4)

ONCE = ("snapshots", "an outer join of events")
LAWS = [law for law in (*LIFETIMES, *SPECULATION) if "BOUND EVERY" not in law.transcript([]).sql]
OFTEN = [pytest.param(law, id=law.name, marks=() if law.name in ONCE else pytest.mark.slow) for law in LAWS]


class Noting(Tracing):
    """Records the positions of the streams' rows: for an edge, of the start and the end."""

    def rows_of(self, node: Operator, spans: Any) -> pa.Table | None:
        rows = super().rows_of(node, spans)
        if isinstance(node, Stream) and rows is not None:
            changed = rows[CHANGED_BY].to_pylist() if isinstance(node, EventStream) else ()
            self.places: set[int] = getattr(self, "places", set()) | {*rows[POSITION].to_pylist(), *changed}
        return rows


@pytest.mark.parametrize("law", OFTEN)
def test_the_rows_of_a_trace_suffice_to_make_the_row(spark: SparkSession, law: LifetimeLaw) -> None:
    case = law.transcript(ENDED)
    program = compile_script(case.sql)
    (sink,) = program.sinks
    folder = Path(tempfile.mkdtemp(prefix="rowtime-test-"))
    sources = {
        n.name: ScriptedSource(
            [i for i in ENDED if i.stream == n.name], [(c.name, c.type) for c in n.columns], case.writers[n.name]
        )
        for n in program.operators
        if isinstance(n, Stream)
    }
    try:
        memory = MemorySink(sink.name)
        tables = tables_from(case, program.operators)
        stages = {sink.name: Stage(memory, folder)}
        engine = Engine(derive(spark), program, Checkpoint(folder), sources, stages, tables=tables)
        engine.start()
        taps = engine.tap = Taps(engine.spark, folder / "taps")
        chosen = []
        for upto in (*CUT, len(ENDED)):
            for source in sources.values():
                source.upto = upto
            before = engine.entry["control"].get(sink.name, {}).get("sequence", 0)
            engine.tick()
            taps.ticks.append(len(taps.ticks))
            after = engine.entry["control"][sink.name]["sequence"]
            sought = Sought(sink, after - 1, None)
            sought.rows, sought.ticks = before, len(taps.ticks) - 1
            found = sought.among(taps, after)
            chosen += [] if found is None else [found]
        assert chosen or not f.rows_of(*law.oracle(law.gates(ENDED)).values())
        for row in chosen:
            tracing = Noting(engine.program, sink, taps)
            trace = tracing.trace(row)
            number = trace.number
            kept = [item for item in ENDED if item.values is None or item.number in tracing.places]
            (items,) = law.oracle(law.gates(kept)).values()
            assert memory.table is not None
            made = memory.table.slice(number, 1).to_pylist()[0]
            row_of = (to_micros(made["rowtime"]), {n: _plain(v) for n, v in made.items() if n != "rowtime"})
            rows = [(one.at, dict(one.values)) for one in f.rows_of(items)]
            assert row_of in rows, f"{row_of} is not among {rows}, which the trace names:\n{trace}"
        engine.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _plain(value: Any) -> Any:
    return to_micros(value) if hasattr(value, "tzinfo") else value
