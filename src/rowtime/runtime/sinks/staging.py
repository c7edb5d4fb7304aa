"""Staging: writes the rows of a tick for a sink, ordered if it asks for order."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowtime.core.clock import least
from rowtime.core.columns import DUE, LINE, POSITION, ROWTIME, WRITER
from rowtime.core.stores import Place, below
from rowtime.frames.queries import give_back
from rowtime.frames.tables import sorted_by
from rowtime.operators.contract import Delta, quoted
from rowtime.operators.contract.state import Route, Segment
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.runtime.file_form import FUNCTIONS, FileForm, writer_options
from rowtime.runtime.segment_writer import write_routes
from rowtime.runtime.sinks.contract import Batch, Owned, Sink
from rowtime.runtime.spark_paths import for_spark
from rowtime.state.files import begin_to_sync, check_sum, make_folder, move
from rowtime.state.memory import read_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.frames.frame import Frame
    from rowtime.operators.gates.column_limits import Limit
    from rowtime.runtime.sinks.ownership import Claim
    from rowtime.runtime.tick import RunningTick

TEXT_FORMATS = FUNCTIONS


@dataclass(frozen=True)
class Gathered:
    """The staged rows of the last entry that the sink does not have yet: of one tick or of several."""

    node: SinkNode
    tick: int
    staged: Mapping[str, Any]


@dataclass(frozen=True)
class Written:
    """The files that one task has written for a sink: their names with numbers of rows, and their checksums.

    ``edges``: the rowtimes (µs UTC) and positions of the first and the last row, if they are in an order.
    """

    files: Sequence[Sequence[Any]] = ()
    sums: Mapping[str, int | None] = field(default_factory=dict)
    edges: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Declared:
    """What a sink says of the files that are written for it; the rest of it stays in the driver's process."""

    casts: Mapping[str, str]
    required: frozenset[str]
    proof: Sequence[Any] | None

    @classmethod
    def by(cls, sink: Any) -> Any:
        """Return what a sink says."""
        required: frozenset[str] = getattr(sink, "required", frozenset())
        return cls(getattr(sink, "casts", {}), required, getattr(sink, "proof", ()))


class Stage:
    """Stages and publishes for one sink operator."""

    def __init__(self, sink: Sink, checkpoint: Place) -> None:
        self.sink, self._checkpoint = sink, checkpoint
        self.folder = sink.folder(checkpoint)
        self.base = 0  # the number of the first row
        self.floor: int | None = None  # a row below it (µs UTC) is refused
        self._tables: dict[str, pa.Table] = {}
        self.gathered: Gathered | None = None
        self.part: int | None = None  # of a tick that a migration computes in several parts

    def claim(self, claim: Claim) -> Callable[[], None]:
        """Claim the target; the returned function records the ownership. Raises ``Refused`` (`ownership`)."""
        if not isinstance(self.sink, Owned):
            return lambda: None
        sink, record = self.sink, self.sink.claim(claim)

        def write() -> None:
            sink.record(record)
            self.base, self.floor = record.base, record.clock
            self.folder = self.sink.folder(self._checkpoint)

        return write

    @property
    def limits(self) -> Sequence[Limit] | None:
        """Return what the columns of an existing table accept; ``None`` if it is not known."""
        return getattr(self.sink, "limits", None)

    @property
    def adopts(self) -> bool:
        """Return True if files of results may be taken over unchanged; not if rows of them may be refused."""
        return self.floor is None and bool(getattr(self.sink, "adopts", True))

    def go_on(self, control: Mapping[str, Any]) -> None:
        """Apply the journal's floor, until the pump's own bound has reached it."""
        floor, bound = control.get("floor"), control.get("bound")
        if floor is not None and (bound is None or bound < floor):
            self.floor = max(floor, self.floor or floor)

    def _stem(self, tick: int) -> str:
        """Return the prefix of the names of a tick's files, so that they sort like the rows."""
        return f"{tick:010d}" if self.part is None else f"{tick:010d}-{self.part:05d}"

    def beyond(self, tick: int, claim: Claim) -> str:
        """Return what the target has that the journal up to a tick does not know, in words; empty for nothing."""
        beyond = getattr(self.sink, "beyond", None)
        return "" if beyond is None else str(beyond(tick, self.base if claim.sent is None else claim.sent[1]))

    def __call__(
        self, tick: RunningTick, node: SinkNode, delta: Delta, before: Sequence[Written] = ()
    ) -> Mapping[str, Any] | None:
        """Write the tick's rows, after what tasks have written ``before``; return the journal's record of all."""
        control, bound = tick.control(node), least(delta.clocks.values())
        first = self.base if control.sequence is None else control.sequence
        written = [*before, self.write(tick, node, delta)]
        files = [file for one in written for file in one.files]
        sums = {path: checksum for one in written for path, checksum in one.sums.items()}
        count = sum(rows for _, rows in files)
        floor = control.floor if self.floor is None else self.floor
        nothing = not count and bound == control.bound and self.gathered is None
        link, base = control.link if nothing else f"{uuid.uuid4().int >> 68:016x}", self.base or control.base
        proof = getattr(self.sink, "proof", ())
        proof = [*proof] if proof is not None else [] if first else [0, ""]  # a target without rows has no link
        tick.remember(node, base=base, floor=floor, sequence=first + count, bound=bound, proof=proof, link=link)
        if nothing:
            return None
        staged = {"files": files, "first": first, "count": count, "bound": bound, "sums": sums}
        staged |= {"folder": self._place(), "skipped": control.skipped, "link": link}
        if self.gathered is not None:
            staged = _behind(self.gathered.staged, staged)
        if count:
            self.check(tick.spark, node, tick.number, staged)
        return staged

    def portable(self) -> Stage:
        """Return a stage that writes the same files in another process, without the sink; it checks nothing."""
        twin = copy(self)
        twin.sink, twin._tables = Declared.by(self.sink), {}  # noqa: SLF001 - its own
        return twin

    def aside(self, folder: Place) -> Stage:
        """Return a stage that writes the same files to another folder, where nobody looks for them."""
        twin = copy(self)
        twin.folder = twin._checkpoint = folder  # noqa: SLF001 - its own
        return twin

    def wrote(self, spark: SparkSession, node: SinkNode, tick: int, staged: Mapping[str, Any]) -> None:
        """Check what a portable stage has written for this one."""
        self._tables = {}
        if staged["count"] > staged.get("gathered", 0):
            self.check(spark, node, tick, staged)

    def check(self, spark: SparkSession, node: SinkNode, tick: int, staged: Mapping[str, Any]) -> None:
        """Let the sink refuse staged rows before the tick's commit."""
        check = getattr(self.sink, "check", None)
        if check is not None:
            check(node, self._batch(spark, tick, staged, self._tables))

    def write(self, tick: RunningTick, node: SinkNode, delta: Delta, task: int | None = None) -> Written:
        """Write rows, or take over files; ``task``: the number of the task that has a part of them."""
        stem = self._stem(tick.number) if task is None else f"{self._stem(tick.number)}-{task:05d}"
        if delta.files is not None:
            files = [self._take(tick, segment, stem) for segment in delta.files]
            return Written(files, {name: segment.sum for (name, _), segment in zip(files, delta.files, strict=True)})
        if delta.rows is None:
            return Written()
        order = node.input.emits().order if node.ordered else ()
        plain = order in ((ROWTIME, WRITER, POSITION), (POSITION,))  # sorted after other columns are computed
        names = node.columns
        form = replace(FileForm.of(node, names), required=getattr(self.sink, "required", frozenset()))
        if self._place() != str(self.folder):  # inside of the checkpoint, where nobody else reads the files
            form = replace(form, dictionary=False)
        rows = ordered(delta.rows, node) if order and not plain else delta.rows
        shown = [f"{ROWTIME} AS {quoted(node.rowtime)}"] if node.rowtime else []
        rows = rows.selectExpr(
            *shown, *map(self._value, node.emits().names), f"unix_micros({ROWTIME}) AS {DUE}", WRITER, POSITION
        )
        columns = {name: name for name in names}
        if form.kind != "parquet":
            rows, columns = _as_text(rows, names, node, form), {name: name for name in (LINE, *form.split)}
        route = {"part": Route(0, columns, DUE)}
        table = _sorted(rows.toArrow(), order) if plain else rows.toArrow()
        written, tables = write_routes(table, self.folder, stem, route, form)
        self._tables = tables
        tick.meter.wrote(written["part"])
        files = [[segment.path, segment.rows] for segment in sorted(written["part"], key=lambda s: s.path)]
        ends = (0, table.num_rows - 1) if order and table.num_rows else ()
        edges = [(table[DUE][at].as_py(), table[POSITION][at].as_py()) for at in ends]
        return Written(files, {segment.path: segment.sum for segment in written["part"]}, edges)

    def _value(self, name: str) -> str:
        """Return a column, in the type of the table."""
        kind = getattr(self.sink, "casts", {}).get(name)
        return f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}" if kind else quoted(name)

    def _take(self, tick: RunningTick, segment: Segment, stem: str) -> list[Any]:
        """Take over a file in the sink's form: it is moved, not written again."""
        name = f"{stem}-{Path(segment.path).name.split('-', 1)[1]}"
        make_folder(self.folder)
        move(tick.folder / segment.path, target := self.folder / name)
        if isinstance(target, Path):
            begin_to_sync(target)  # the old name was synced; the new one has to be as well
        return [name, segment.rows]

    def _place(self) -> str:
        """Return the folder of staged files, relative to the checkpoint if inside it, because that may be moved."""
        return below(self.folder, self._checkpoint)

    def publish(self, spark: SparkSession, node: SinkNode, tick: int, staged: Mapping[str, Any]) -> None:
        """Publish what a committed entry staged, or keep it for later if the sink gathers ticks."""
        tables, self._tables = self._tables, {}
        waits = getattr(self.sink, "waits", None)
        self.gathered = Gathered(node, tick, staged) if waits is not None and waits() else None
        if self.gathered is None:
            self._hand_over(spark, node, tick, staged, tables)

    def settle(self, spark: SparkSession, *, now: bool) -> bool:
        """Publish gathered rows, if they are due or ``now``; return False if some still wait."""
        kept = self.gathered
        if kept is not None and (now or not self.sink.waits()):  # type: ignore[attr-defined]  # it has gathered
            self._hand_over(spark, kept.node, kept.tick, kept.staged, {})
            self.gathered = None
        return self.gathered is None

    def _hand_over(
        self,
        spark: SparkSession,
        node: SinkNode,
        tick: int,
        staged: Mapping[str, Any],
        tables: Mapping[str, pa.Table],
    ) -> None:
        self.sink.publish(spark, node, self._batch(spark, tick, staged, tables))

    def _batch(
        self, spark: SparkSession, tick: int, staged: Mapping[str, Any], tables: Mapping[str, pa.Table]
    ) -> Batch:
        """Return the staged rows; ``tables`` are the files that need not be read."""
        files = [self.folder / path for path, _ in staged["files"]]

        def table() -> pa.Table:
            kept = [tables.get(path) for path, _ in staged["files"]]
            parts = [part if part is not None else read_table(file) for part, file in zip(kept, files, strict=True)]
            return pa.concat_tables(parts) if parts else pa.table({})

        def rows() -> DataFrame:
            return spark.read.parquet(*map(for_spark, files))

        numbers = staged["first"], staged["count"], staged["bound"]
        return Batch(tick, *numbers, files, table, rows, staged.get("skipped", 0), staged.get("link", ""))

    def recover(self, staged: Mapping[str, Any] | None) -> None:
        """Remove files of crashed ticks; raises ``Failure`` (R406) if one of the last tick's is damaged."""
        self.sink.recover([path for path, _ in staged["files"]] if staged else [])
        for path, checksum in (staged or {}).get("sums", {}).items():
            if (self.folder / path).exists():  # otherwise it has been delivered
                check_sum(self.folder / path, checksum)

    def close(self) -> None:
        """Release the sink's resources."""
        close = getattr(self.sink, "close", None)
        if close is not None:
            close()


def _behind(before: Mapping[str, Any], staged: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is staged after the gathered rows; ``gathered``: their number."""
    return {
        **staged,
        "files": [*before["files"], *staged["files"]],
        "first": before["first"],
        "count": before["count"] + staged["count"],
        "sums": {**before["sums"], **staged["sums"]},
        "skipped": before["skipped"],
        "gathered": before["count"],
    }


def ordered(rows: Frame, node: SinkNode) -> Frame:
    """Return rows in stream order."""
    shape = node.input.emits()
    # A select list may omit columns that order the changes of one version; then all that it has decide.
    order = shape.order if shape.shows_order else (*shape.shown_order, *map(quoted, shape.names))
    return rows.in_order(order)


def _sorted(rows: pa.Table, order: Sequence[str]) -> pa.Table:
    """Return the rows ordered by their places, and first by ``__n`` (µs) and by writer if these are in the order."""
    give_back(rows.num_rows)
    rows = sorted_by(rows, [DUE if name == ROWTIME else name for name in order])
    assert rows is not None  # numbers and names, of which none is NULL
    return rows


def _as_text(rows: Frame, names: list[str], node: SinkNode, form: FileForm) -> Frame:
    packed = f"struct({', '.join(quoted(name) for name in names if name not in form.split)})"
    options = writer_options(node.format, node.options)
    return rows.selectExpr(
        f"{TEXT_FORMATS[node.format]}({packed}, {options}) AS {LINE}", *map(quoted, form.split), DUE, WRITER, POSITION
    )
