"""One tick: explicit ranges of every source, and one journal entry.

The tick offers operators their services (`operators.contract.Tick`) and collects their results: scalars, segments,
refused rows, staged output. None is visible before the journal entry; the next start removes what a crash leaves.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField

from rowtime.core.columns import BOUND, DUE, ROUTE, ROW_NUMBER
from rowtime.core.errors import Failure, Problem
from rowtime.core.stores import Place
from rowtime.frames.constants import value_of
from rowtime.frames.frame import Frame
from rowtime.frames.queries import FEW_ROWS
from rowtime.frames.tables import put_together
from rowtime.operators.contract import Control, Delta, Operator
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import C, Keeper, Route, Segment
from rowtime.operators.sinks.sink import Sink
from rowtime.operators.streams.stream_clocks import StreamClocks
from rowtime.operators.streams.table import Table
from rowtime.operators.streams.table_versions import TableVersions, kept_versions
from rowtime.runtime import local_rows
from rowtime.runtime.begun import OUTCOME, Begun, Outcome, carried, continued
from rowtime.runtime.clock_pass import clock_pass
from rowtime.runtime.column_types import ColumnTypes
from rowtime.runtime.given_rows import GivenRows
from rowtime.runtime.loose_types import loose, loosened
from rowtime.runtime.meter import Meter
from rowtime.runtime.narrow_tables import LIMITS, Narrowed
from rowtime.runtime.refusal import Refusal, Rejection, above, apart, stopped_by
from rowtime.runtime.segment_writer import PARQUET, STATE, write_routes, write_table
from rowtime.runtime.sinks.failures import naming
from rowtime.runtime.sinks.staging import Stage, Written
from rowtime.runtime.spark_paths import for_spark
from rowtime.runtime.static_tables import rows_of
from rowtime.runtime.stored_schemas import fields_of, schema_of, stored
from rowtime.runtime.tick_segments import TickSegments
from rowtime.state.checkpoint import folder_of
from rowtime.state.costs import CLOCK, SINKS
from rowtime.state.memory import Memory
from rowtime.state.segments import Kept, SegmentLog

GivenTable = Callable[["SparkSession"], "DataFrame"]
Ledger = MutableMapping[str, Counter[str]]


class RunningTick:
    """The current tick; implements `operators.contract.Tick`."""

    of_keys = False

    def __init__(  # noqa: PLR0913 - the parts of a pipeline, given once
        self,
        spark: SparkSession,
        number: int,
        folder: Place,
        entry: Mapping[str, Any],
        intakes: Callable[[Operator, StreamClocks], Intake],
        deliver: Mapping[str, Stage],
        adopted: Mapping[str, Mapping[str, str]],
        changing: Collection[str],
        memory: Memory,
    ) -> None:
        self.spark, self.number, self.folder, self.memory = spark, number, folder, memory
        self._stored: dict[str, Any] = json.loads(json.dumps(entry.get("control", {})))
        self.controls: dict[str, Control] = {}
        self.schemas: dict[str, Any] = dict(entry.get("schemas", {}))
        sums = entry.get("sums", {})
        self.logs = {key: SegmentLog(rows, sums) for key, rows in entry.get("segments", {}).items()}
        self.outputs: dict[str, Any] = {}
        self.tables: Mapping[str, GivenTable] = {}
        self.narrowed: Narrowed = {}
        self.column_types = ColumnTypes(spark)
        self.gate_of: Callable[[Operator], str] | None = None
        self.stops, self.why = False, ""  # the first row that cannot be computed ends the run; why, in words
        self.ledger: Ledger = {}
        self.skipped: dict[str, list[Frame]] = {}  # by gate; the ledger has counted them already
        self.jobs, self.held = list[str](), dict[str, int]()  # ``held``: what the process that stepped has counted
        self.meter, self.given, self.now = Meter(), GivenRows(), 0
        self._intakes, self._deliver, self._adopted, self._changing = intakes, deliver, adopted, changing
        self._refused: dict[str, list[tuple[str, Sequence[Segment]]]] = {}
        self._tables, self._written = dict[str, pa.Table](), list[str]()

    # -- services for operators ---------------------------------------------------------

    @property
    def trying(self) -> bool:
        """Return True if rows are examined one by one, because a value has failed."""
        return self.gate_of is not None

    def intake(self, node: Operator) -> Intake:
        """Return what this tick takes from the source of a stream."""
        control = self.control(node)
        assert isinstance(control, StreamClocks)
        intake = self._intakes(node, control)
        if intake.modes:
            self.remember(node, modes=intake.modes)
        return intake

    def set_by_hand(self, operator: str, at: int) -> None:
        """Give an operator a bound (µs UTC) that was set manually."""
        self._stored.setdefault(operator, {}).setdefault("set", []).append(at)

    def control(self, node: Keeper[C]) -> C:
        """Return the operator's own scalars."""
        if node.name not in self.controls:
            self.controls[node.name] = node.control.of(self._stored.get(node.name, {}))
        control = self.controls[node.name]
        assert isinstance(control, node.control)
        return control

    def remember(self, node: Keeper[C], **changes: Any) -> C:
        """Change some of the operator's scalars."""
        self.controls[node.name] = control = replace(self.control(node), **changes)
        return control

    def segments(self, node: Operator, what: str = "state") -> TickSegments:
        """Return the operator's kept rows."""
        key = f"{node.name}/{what}"
        return TickSegments(self, node, key, self.logs.setdefault(key, SegmentLog()))

    def refused(self, gate: str) -> Sequence[Frame]:
        """Return the rows that a gate refused in this tick, and those that were skipped before it."""
        return [*self.skipped.get(gate, ()), *(self.read(*written) for written in self._refused.get(gate, ()))]

    def scalar(self, query: str) -> int:
        """Return the value of a query over constants; Spark folds what has no translation, without a job."""
        return int(self.spark.sql(query).collect()[0][0]) if (value := value_of(query, self.spark)) is None else value

    def types(self, node: Operator) -> Sequence[str]:
        """Return the types of an operator's columns, computed ones too."""
        return self.column_types.of(node)

    def limits(self, node: Operator) -> Sequence[Mapping[str, Any]]:
        """Return the limits of the table behind a pump, if narrower than declared."""
        return self.narrowed.get(node.name, ())

    def adopted_as(self, node: Operator) -> Mapping[str, str] | None:
        """Return the columns of a sink that takes over the operator's files."""
        return self._adopted.get(node.name)

    def shows_each_change(self, node: Operator) -> bool:
        """Return whether an operator above needs each change of its events."""
        return node.name in self._changing

    def lookup(self, node: Table) -> Frame | DataFrame:
        """Return the present rows of a static table, with numbers: those given from Python, else from Spark."""
        rows = rows_of(self.spark, node, self.tables.get(node.table))
        rows = loosened(rows.selectExpr("*", f"monotonically_increasing_id() AS {ROW_NUMBER}"))
        table = rows.limit(FEW_ROWS + 1).toArrow()
        return rows if table.num_rows > FEW_ROWS else local_rows.of_table(self.spark, rows.schema, table)

    def reread(self, node: TableVersions, *, first: bool) -> DataFrame | None:
        """Return the present rows of a table; in a replay the versions of the checkpoint, once."""
        recorded = self.tables.get(kept_versions(node.name))
        if recorded is not None:
            return recorded(self.spark) if first else None
        return rows_of(self.spark, node, self.tables.get(node.table))

    def describe(self, node: Operator, what: str) -> None:
        """Note what is done now, for those who watch: tick, operator, purpose."""
        self.jobs.append(f"tick {self.number} · {node.kind} {node.name}: {what}")

    def write(
        self, node: Operator, rows: Frame | pa.Table | DataFrame, routes: Mapping[str, Route]
    ) -> Mapping[str, Sequence[Segment]]:
        """Write rows to new files of the checkpoint, one route each, one Spark job for those of a static table."""
        for name, route in routes.items():
            self.schemas[f"{node.name}/{name}"] = stored(rows, route.columns)
        stem = f"state/{folder_of(node.name)}/{self.number:012d}"
        if isinstance(rows, pa.Table):  # a tick may write several of these, in order
            stem += f"-{sum(path.startswith(stem) for path in self._written):05d}"
        passing = {name for name in routes if f"/{name}" in _PASSING}
        adopted = bool(passing) and self.adopted_as(node) is not None  # the files are a sink's
        form, held = (PARQUET, set()) if adopted else (STATE, passing)
        written, tables = write_routes(rows, self.folder, stem, routes, form, held)
        self._tables.update(tables)
        # The next tick reads them at once if they are few.
        self.memory.remember((s for name in written if name not in passing for s in written[name]), tables)
        self._new(segment for of_route in written.values() for segment in of_route if segment.sum is not None)
        return written

    def keep(self, node: Operator, what: str, rows: pa.Table, time: str) -> Sequence[Segment]:
        """Write rows to a new file of the checkpoint."""
        if not rows.num_rows:
            return []
        stem = f"state/{folder_of(node.name)}/{self.number:012d}"
        segment = write_table(rows, self.folder, stem, what, time)
        self.memory.put(segment.path, rows)
        self._new([segment])
        return [segment]

    def frame(self, node: Keeper[Any], rows: pa.Table) -> Frame:  # noqa: ARG002 - the contract's
        """Return rows as a frame."""
        return local_rows.of_table(self.spark, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True), rows)

    def judge(self, node: Operator, rows: Frame, gate: Gate, times: pa.Table | None = None) -> Verdict:
        """Decide at a gate which rows are refused."""
        self.describe(node, "clock pass")
        with self.meter.part(CLOCK):
            verdict = self.decided(node, rows, gate, times)
        clock_pass.check(node.name, verdict)
        if gate.of_time:
            self.meter.saw(node.name, verdict.lowest, verdict.highest, verdict.mean)
        return verdict

    def account(self, node: Operator, rows: Frame, verdict: Verdict, time: str, clock: str | None = None) -> Frame:
        """Count refused rows in the ledger; return the accepted rows."""
        self.ledger.setdefault(node.name, Counter()).update(verdict.counts)
        accepted = rows
        if verdict.refused is not None:
            refusal = Refusal(self.spark, verdict.refused)
            self.describe(node, "write refused rows")
            self._reject(node.name, refusal.of(rows, time, clock), verdict.refused.num_rows)
            accepted = refusal.others(rows)
        return accepted.where(f"{BOUND} IS NULL") if BOUND in rows.columns else accepted

    def refuse(self, node: Operator, rows: Frame, broken: str) -> Frame:
        """Refuse as MALFORMED the rows in which the column ``broken`` is not NULL; return the others without it."""
        self.describe(node, "tell apart the rows that do not fit")
        split = apart(rows, broken)
        self.ledger.setdefault(node.name, Counter()).update(split.counts)
        if split.refused is not None:
            self._reject(node.name, split.refused, split.counts["MALFORMED"])
        return split.accepted

    def refuse_computed(self, node: Operator, rows: Frame, broken: str) -> Frame:
        """Refuse rows that an operator has computed, at the gate of its query."""
        assert self.gate_of is not None
        return self.refuse_failing(self.gate_of(node), node, rows, broken, "computed")

    def refuse_failing(self, gate: str, node: Operator, rows: Frame, broken: str, kind: str = "rejected") -> Frame:
        """Refuse rows that cannot be computed, at the gate of a query; it counts only these.

        A tick without such a row is not examined, so the number of passed rows is unknown there.
        """
        self.describe(node, "find the rows that cannot be computed")
        split = apart(rows, broken)
        if split.refused is not None:
            if self.stops:
                raise stopped_by(gate, split.refused, self.why)
            many = split.counts["MALFORMED"]
            self.ledger.setdefault(gate, Counter()).update({"in": many, "accepted": 0, "MALFORMED": many})
            self._reject(node.name, split.refused, many, gate, kind)
        return split.accepted

    def turn_away(self, gate: str, refused: Rejection, counts: Mapping[str, int]) -> None:
        """Add rows to the ledger that a gate without an operator refuses."""
        self.ledger.setdefault(gate, Counter()).update(counts)
        self._reject(gate, refused, counts["in"])

    def count(self, node: Operator, accepted: int, span: tuple[int, int] | None = None) -> None:
        """Count rows in the ledger that a gate accepts without a clock pass; ``span`` of their times (µs), if known."""
        if span is not None:
            self.meter.saw(node.name, *span)
        self.ledger.setdefault(node.name, Counter()).update({"in": accepted, "accepted": accepted})

    def deliver(self, node: Sink, delta: Delta) -> None:
        """Stage the rows of a sink."""
        self.describe(node, "write output")
        self.stage(node, delta)

    def stage(self, node: Sink, delta: Delta, before: Sequence[Written] = ()) -> None:
        """Stage the rows of a sink, after those that tasks have written before."""
        with naming(node), self.meter.part(SINKS):
            stage = self._deliver[node.name]
            rows = delta if stage.floor is None else above(self, node, delta, stage.floor)
            staged = stage(self, node, rows, before)
        if staged is not None:
            self.outputs[node.name] = staged

    # -- the one task that has all rows; one of several does something else (`executors.level_ticks`) ---

    def decided(self, node: Operator, *given: Any) -> Verdict:  # noqa: ARG002 - of a task with a part of the rows
        """Return a gate's verdict on the rows of the tick, from the arguments of `judge`."""
        return clock_pass.judge(*given)

    def stepped(self, node: Operator) -> Delta | None:  # noqa: ARG002 - as above
        """Return the result of an operator that has stepped elsewhere; ``None`` if it steps here."""
        return None

    def leave(self, node: Operator, rows: Frame) -> None:
        """Do nothing: this task has all keys."""

    def received(self, node: Operator, reader: Operator, delta: Delta) -> Delta:  # noqa: ARG002 - as above
        """Return what an operator gives to one above it; ``delta``: what it has given in this task."""
        return delta

    def needs_all_rows(self, why: str) -> None:
        """Do nothing."""

    # -- after the steps --------------------------------------------------------

    def begun(self, entry: Mapping[str, Any]) -> Begun | None:
        """Return the tick for another process; ``None`` if its steps need rows of this one. ``entry``: the last."""
        if self.skipped or self.trying:
            return None
        return Begun.of(self, carried(entry, self._stored, self.controls))

    def outcome(self) -> Outcome:
        """Return the outcome of the steps: scalars, segments, counts and names of files, and no rows."""
        return {name: vars(self)[name] for name in OUTCOME}, self.meter.measured()

    def take(self, outcome: Outcome) -> None:
        """Take over the outcome of steps in another process."""
        vars(self).update(continued(vars(self), outcome[0]))
        self.meter.take(outcome[1])

    def _new(self, segments: Iterable[Segment]) -> None:
        self.meter.wrote(listed := [*segments])
        self._written += (segment.path for segment in listed)

    def read(self, key: str, segments: Sequence[Segment]) -> Frame:
        """Return rows of segments: from memory if they were written in this tick, or from their files."""
        fields = fields_of(self.schemas[key])
        if not segments:
            return Frame.empty(self.spark, fields)
        return local_rows.framed(self.spark, fields, put_together(fields, [self.rows_of(key, s) for s in segments]))

    def rows_of(self, key: str, segment: Segment) -> pa.Table:  # noqa: ARG002 - of a task with some keys
        """Return the rows of a segment; ``key``: its operator and what they are."""
        return self.table(segment)

    def in_spark(self, node: Operator, what: str, segments: Sequence[Segment]) -> DataFrame:
        """Return kept rows of a static table as Spark's, for a query that is computed once."""
        key = f"{node.name}/{what}"
        held, files = ([s for s in segments if (s.path in self._tables) is kept] for kept in (True, False))
        if files and all(segment.sum is not None for segment in held):  # all can be read at once
            held, files = [], [*segments]
        self.memory.check(s for s in files if s.path not in self._written)  # their checksums are new
        of = [for_spark(self.folder / s.path) for s in files], [self._tables[s.path] for s in held]
        return local_rows.in_spark(self.spark, schema_of(self.schemas[key]), *of)

    def table(self, segment: Segment, names: Sequence[str] | None = None) -> pa.Table:
        """Return the rows of a segment, with at least some columns."""
        written = self._tables.get(segment.path)
        return self.memory.get(segment, names) if written is None else written

    def entry(self) -> dict[str, Any]:
        """Return the journal entry of this tick."""
        kept = {k: log for k, log in self.logs.items() if log.live and not k.endswith(_PASSING)}
        written = [segment for parts in self._refused.values() for _, part in parts for segment in part]
        refused = {segment.path: segment.sum for segment in written if segment.sum is not None}
        return {
            "control": self._stored | {name: control.stored() for name, control in self.controls.items()},
            **({LIMITS: self.narrowed} if self.narrowed else {}),
            "schemas": self.schemas,
            "segments": {k: log.entries() for k, log in kept.items()},
            "sums": {path: checksum for log in kept.values() for path, checksum in log.sums().items()} | refused,
            "outputs": self.outputs,
            "ledger": {name: dict(counts) for name, counts in self.ledger.items()},
            "refused": {gate: [s.path for _, part in parts for s in part] for gate, parts in self._refused.items()},
        }

    def passing(self) -> list[str]:
        """Return files of intermediate results of the tick."""
        return [path for path in self._written if any(f"-{kind[1:]}-" in path for kind in _PASSING)]

    def kept(self) -> dict[str, Kept]:
        """Return what is kept after the tick, by operator and kind."""
        logs = ((key, log) for key, log in self.logs.items() if not key.endswith(_PASSING))
        return {key: Kept.of(log, self._written) for key, log in logs if log.live or log.dropped}

    def dropped(self) -> list[Segment]:
        """Return segments that are dead once this tick is committed."""
        return [segment for log in self.logs.values() for segment in log.dropped]

    def _reject(
        self, name: str, rejection: Rejection, count: int, gate: str | None = None, kind: str = "rejected"
    ) -> None:
        """Write refused rows beside the state; they are moved to ``rejected/<gate>`` once the tick is committed."""
        fields = {f.name: StructField(f.name, loose(f.dataType)).jsonValue() for f in rejection.schema.fields}
        names = [column for column in fields if column not in (DUE, ROUTE)]
        self.schemas[key := f"{name}/{kind}"] = {"type": "struct", "fields": [fields[column] for column in names]}
        stem = f"state/{folder_of(name)}/{self.number:012d}-{uuid.uuid4().hex[:6]}"
        route = {"rejected": Route(0, dict(zip(names, names, strict=True)), DUE)}
        rows = rejection.by_values if kind == "computed" else rejection.rows
        written, tables = write_routes(rows, self.folder, stem, route)
        self._tables.update(tables)
        self.meter.wrote(written["rejected"])
        if sum(segment.rows for segment in written["rejected"]) != count:
            raise Failure(Problem("R901", f"{name} refused {count} rows, but not all were written"))
        self._refused.setdefault(gate or name, []).append((key, written["rejected"]))


_PASSING = ("/complete", "/merged", "/failed")  # files of intermediate results; not needed after the tick
