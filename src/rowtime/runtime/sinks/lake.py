"""A lake table as a sink: readers see whole ticks, each once, whatever crashes (semantics 14.1).

Rows are staged under the folder of the table, as in a directory (`directory`), and moved into place when the tick is
committed; no reader sees them there. One commit of the table adds them all, and in the same commit the table records
which tick of which pump of which checkpoint it has: its *mark*. A start after a crash finds the mark, and publishes the
tick only if the mark is older. The next start commits files that a crash has left in place without a commit.

The mark counts the rows too, and has the link by which the journal knows the tick (`ownership`). If a table has fewer
rows than the journal has delivered, or another link, it is another table, an older copy, or that of another copy of the
checkpoint; it is refused and never filled again (R564).

On an object store nothing is renamed: files are written to their final place, in a folder of the pump, under unique
names. VACUUM removes the leftovers of a crash, which no version names. A start does not: they might be another
driver's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from pyspark.sql.types import ByteType, DataType, DecimalType, IntegerType, LongType, NumericType, ShortType

from rowtime.core.counts import counted
from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.shared_paths import sync
from rowtime.core.stores import ObjectPlace, Place
from rowtime.expr.store_assignment import always_fits, as_read
from rowtime.operators.gates.column_limits import Limit
from rowtime.operators.gates.pump_gate import limited_gate
from rowtime.plan.bind.sink_options import CHANGE, LakeOptions
from rowtime.runtime.sinks.directory import STAGING, DirectorySink
from rowtime.runtime.sinks.lake_rows import app_of
from rowtime.runtime.sinks.ownership import Claim, Contents, Proof, Record, changed, fenced, read, tag_of
from rowtime.runtime.sources.lake_columns import type_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.runtime.sinks.contract import Batch

MICROS: Final = 1_000_000
_TRIES: Final = 20  # commits of faster writers
_OWN: Final = "rowtime-"  # prefix of a pump's folder in a table on a store, before its tag; VACUUM skips _rowtime
_CHANGING: Final = ".changing"  # beside the record of a pump whose rows replace others


@dataclass(frozen=True)
class Mark:
    """A table's record of a pump: all ticks up to ``tick``, with so many ``rows``; ``link`` identifies them.

    The link is empty if an older version wrote the last tick.
    """

    tick: int = -1
    rows: int = 0
    link: str = ""


@dataclass(frozen=True)
class TableState:
    """An existing table: its unique ``identity``, its columns, and its record of the pump.

    ``odd``: a feature of the table that rowtime cannot write, in words; empty for none.
    """

    identity: str
    columns: StructType
    partitions: tuple[str, ...]
    mark: Mark
    odd: str = ""


@dataclass(frozen=True)
class Ready:
    """What one commit adds: files in their places, with their rows, and the mark after it.

    ``bound``: no later row of the pump has a rowtime below it (µs UTC). In a table whose rows have a ``key``, the last
    row of a key replaces the one before it, or removes it if the column ``gone`` says so.
    """

    app: str
    files: Sequence[Place]
    mark: Mark
    bound: int
    key: tuple[str, ...] = ()
    gone: str = ""


class Conflict(Exception):
    """Another writer has committed in between; nothing was committed."""


class LakeTable(Protocol):
    """A table of one format; ``promised``: its files declare which columns are non-null.

    ``alone``: no catalog is shared with others, so that a commit to one table does not delay others.
    """

    promised: bool
    alone: bool

    def look(self, app: str) -> TableState | None:
        """Return the present table; ``app``: whose mark."""
        ...

    def create(self, columns: StructType, partitions: Sequence[str]) -> None:
        """Create the table. Raises `Conflict` if somebody else just has."""
        ...

    def commit(self, ready: Ready) -> None:
        """Make one commit. Raises `Conflict`."""
        ...

    def compact(self) -> int:
        """Combine small files into large ones; return their number. Raises `Conflict`."""
        ...

    def spare(self) -> int:
        """Return how many files of the committed table could be parts of larger ones."""
        ...

    def rows(self, files: Callable[[str], bool], *, merged: bool, every: bool) -> pa.Table | None:
        """Return the rows of some files; if rows are ``merged``, all. ``every``: the files are all of the pump's.

        ``None`` if rows have been moved into other files since.
        """
        ...


@dataclass(frozen=True)
class Wanted:
    """The columns that a pump writes, in Spark's types, with the NOT NULL ones, and the write mode."""

    pump: str
    columns: StructType
    options: LakeOptions
    place: str

    @classmethod
    def by(cls, node: SinkNode, place: str) -> Wanted:
        """Return what a sink writes, by the gate of its pump, which knows the declared types."""
        from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - not for those who only plan

        gate = limited_gate(node.input)
        assert gate is not None
        options = LakeOptions.of(dict(node.options))
        given = [(node.rowtime, "TIMESTAMP", False)] if node.rowtime else []
        given += [(column.name, as_read(column.type), column.required) for column in gate.assigned]
        written = options.written([name for name, *_ in given])
        types = {name: type_of(kind) for name, kind, _ in given}
        fields = [StructField(name, types[name], nullable=not required) for name, _, required in given]
        columns = StructType([field for field in fields if field.name in written])
        return cls(node.name.removesuffix(".sink"), columns, options, place)


class LakeSink(DirectorySink):
    """Publishing twice commits nothing twice: the table's mark says what it has."""

    def __init__(self, node: SinkNode, table: LakeTable, path: Place, called: str) -> None:
        self._wanted = Wanted.by(node, called)
        super().__init__(path, self._wanted.pump)
        self._table, self._fitted = table, Fitted()
        self._known: TableState | None = None
        self._last = Mark()  # of the table, when it was claimed or last written
        self._committed: float | None = None  # when, by the clock of this process
        self._spare: int | None = None  # files that could be parts of larger ones, once they have been counted

    @property
    def limits(self) -> Sequence[Limit]:
        """Return the limits of the table's columns, if narrower than declared."""
        return self._fitted.limits

    @property
    def casts(self) -> Mapping[str, str]:
        """Return the columns that the table has in another type, and that type."""
        return self._fitted.casts

    @property
    def adopts(self) -> bool:
        """Return True if files of results may become files of the table unchanged."""
        options = self._wanted.options
        if isinstance(self.path, ObjectPlace):
            return False
        return not (self._fitted.limits or self._fitted.casts or options.partitions or options.key or self.required)

    @property
    def alone(self) -> bool:
        """Return True if its commits are independent of other tables."""
        return self._table.alone

    @property
    def required(self) -> frozenset[str]:
        """Return the columns that files must declare non-null; the gate of the pump makes sure of it."""
        fields = self._known.columns.fields if self._known else self._wanted.columns.fields
        return frozenset(field.name for field in fields if not field.nullable) if self._table.promised else frozenset()

    # -- the start --------------------------------------------------------------------

    def claim(self, claim: Claim) -> Record:
        """Return the record with which the pump may write, and lock its place. Raises ``Refused``, see `ownership`.

        R561 to R564 if the table cannot be written, or is not the one that has the rows of the checkpoint.
        """
        self._identity = claim.identity
        table = self._table.look(self._app)
        self._check(table)
        self._last = table.mark if table else Mark()
        if self._last.rows < claim.least:
            raise self._another(table, claim.least)
        if not claim.knows(self._last.link) and self._last.tick <= claim.tick:
            raise self._of_another_copy(claim.least)
        if table is None and (foreign := next(self._foreign(), None)) is not None:
            what = f"the pump {self._pump} cannot write to {self._wanted.place}: the folder is no table, and has files"
            raise refuse("R562", f"{what} ({foreign.name})", "Take a new folder or an empty one, or convert this one.")
        return super().claim(claim)

    @property
    def proof(self) -> Proof | None:
        """Return what identifies the rows of the table."""
        return Proof(self._last.rows, self._last.link) if self._known is not None else None

    def _compare(self, claim: Claim, target: str) -> None:
        """Do nothing: the table has the mark, not the folder."""

    def folder(self, checkpoint: Place) -> Place:
        """Return the staging folder; on a store, the final folder of the files."""
        if not isinstance(self.path, ObjectPlace):
            return super().folder(checkpoint)
        return self.path / f"{_OWN}{tag_of(self._identity, self._pump)}"

    def recover(self, staged: Sequence[str]) -> None:
        """Remove staged files that no commit names; on a store VACUUM does."""
        if not isinstance(self.path, ObjectPlace):
            super().recover(staged)

    def record(self, record: Record) -> None:
        """Record the owner, before the first row. Raises ``Refused`` (R566) if another pump changes rows there."""
        changing, staging = bool(self._wanted.options.key), self.path / STAGING
        if changing:
            others = (folder for folder in staging.iterdir() if folder != self._own and (folder / _CHANGING).exists())
            names = sorted(folder.name for folder in others)
            if names:
                what = (
                    f"the pump {names[0]} changes rows of {self._wanted.place}, so the pump {self._pump} cannot do "
                    "so too"
                )
                hint = "Let one pump write both, from a UNION ALL; or give this one a table of its own."
                raise refuse("R566", what, hint)
        super().record(record)
        if changing:
            (self._own / _CHANGING).touch()

    def beyond(self, tick: int, rows: int) -> str:
        """Report ticks that the table has and the journal does not know."""
        table = self._table.look(self._app)
        if table is None or (table.mark.tick <= tick and table.mark.rows <= rows):
            return ""
        return f"{self._wanted.place} has its rows up to tick {table.mark.tick}, {table.mark.rows:,} in all"

    def _contents(self) -> Contents | None:
        """Return what the recorded checkpoint's pump has written."""
        record = read(self._own)
        if record is None:
            return None
        table = self._table.look(app_of(record.identity, self._pump))
        rows = table.mark.rows if table else 0
        return Contents(None, None, counted(rows, "rows"), empty=not rows)

    def _check(self, table: TableState | None) -> None:
        """Remember a table. Raises ``Refused`` (R561, R563) if the pump cannot write to it."""
        if table is not None and table.odd:
            what = f"the pump {self._pump} cannot write to {self._wanted.place}: the table {table.odd}"
            raise refuse("R563", what, "Write to a table without it, and copy from there.")
        if table is not None and (self._known is None or self._known.columns != table.columns):
            self._fitted = fitted(self._wanted, table)
        self._known = table

    def _foreign(self) -> Iterator[Place]:
        paths: Iterator[Place] = self.path.glob("*") if self.path.is_dir() else iter(())
        return (path for path in paths if path.name != STAGING and not path.name.startswith(_OWN))

    def _another(self, table: TableState | None, rows: int) -> Refused:
        """Return R564: the table does not have the rows that it was given."""
        state = f"has {table.mark.rows:,} of them" if table else "is gone"
        return changed(self._pump, self._wanted.place, rows, state)

    def _of_another_copy(self, rows: int) -> Refused:
        return changed(self._pump, self._wanted.place, rows, "has those of another copy of the checkpoint")

    # -- schedule -----------------------------------------------------------------------

    def waits(self) -> bool:
        """Return True if ticks are gathered and the last commit was recent; False for the first one of a start."""
        interval = self._wanted.options.interval
        if not interval or self._committed is None:
            return False
        return time.monotonic() - self._committed < interval / MICROS

    def _compact(self, files: int) -> None:
        """Compact the table if too many of its files could be parts of larger ones.

        They are counted after a process' first commit, and after a compaction that lost a conflict.
        """
        most = self._wanted.options.files
        if not most:
            return
        self._spare = max(self._table.spare(), files) if self._spare is None else self._spare + files
        if self._spare >= most:
            self._spare = None
            with contextlib.suppress(Conflict):  # somebody else changes these files; they wait for the next time
                self._table.compact()
                self._spare = 0

    # -- one tick ---------------------------------------------------------------------

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Commit the rows of a tick with their mark, unless the table has them. Raises ``Failure`` (R565, R568)."""
        before = batch.first - batch.skipped
        for _ in range(_TRIES):
            with contextlib.suppress(Conflict):
                table = self._opened(before)
                if table.mark.tick >= batch.tick and batch.count:
                    if table.mark.tick == batch.tick and table.mark.link != batch.link:
                        raise self._of_another_copy(before + batch.count)
                    self._last = table.mark
                    return
                if table.mark.rows != before:
                    raise self._another(table, before)
                if table.mark.link != self._last.link:
                    raise self._of_another_copy(before)
                if batch.count:
                    self._commit(batch, before)
                return
        what = f"the pump {self._pump} cannot commit to {self._wanted.place}: others committed first {_TRIES} times"
        raise Failure(Problem("R565", what, hint="The tick is repeated. Let the other writers commit less often."))

    def _opened(self, before: int) -> TableState:
        """Return the present table; create it if it has never had a row. Raises ``Refused`` (R561, R563, R564)."""
        former = self._known
        table = self._table.look(self._app)
        if table is None and before:
            raise self._another(None, before)
        if table is None:
            self._table.create(self._wanted.columns, self._wanted.options.partitions)
            table = self._table.look(self._app)
            assert table is not None
        if table.columns != (former or table).columns:
            before_it = self._fitted
            self._check(table)
            if self._fitted != before_it:
                what = f"the columns of {self._wanted.place} were changed while the pump {self._pump} wrote"
                raise Failure(Problem("R561", what, hint="Start again: the next start reads them again."))
        self._check(table)
        return table

    def _commit(self, batch: Batch, before: int) -> None:
        options = self._wanted.options
        gone = CHANGE if options.mode == "changes" else ""
        files = [*batch.files]  # in a table with a key they are beside it
        if isinstance(self.path, ObjectPlace):
            self._check_owner()
        elif not options.key:
            files = [self._moved(file) for file in batch.files]
            sync(self.path)
        missing = next((file for file in files if not file.exists()), None)
        if missing is not None:
            what = f"{missing}, which has rows of tick {batch.tick} of the pump {self._pump}, is gone"
            raise Failure(Problem("R568", what, hint="Restore it from a copy. Rowtime does not guess what it held."))
        mark = Mark(batch.tick, before + batch.count, batch.link)
        self._table.commit(Ready(self._app, files, mark, batch.bound, options.key, gone))
        self._committed, self._last = time.monotonic(), mark
        for file in batch.files if options.key else ():
            file.unlink(missing_ok=True)  # merged files
        self._compact(len(files))

    def _check_owner(self) -> None:
        """Raise ``Refused`` (R441) after a takeover by another checkpoint, which no lock excludes on a store."""
        record = read(self._own)
        if record is not None and record.identity != self._identity:
            raise fenced(record, self._wanted.place)

    @property
    def _app(self) -> str:
        return app_of(self._identity, self._pump)


def published(name: str) -> str:
    """Return the name that a table's file, given by its path, would have on a disk."""
    folder, _, file = name.rpartition("/")
    if not folder.startswith(_OWN):
        return file
    return f"part-{file.removesuffix('.parquet')}-{folder.removeprefix(_OWN)}.parquet"


# How the columns of a pump fit an existing lake table (semantics 10).
#
# A pump writes Parquet, so the types in its files have to be the table's. A column of the same type accepts all values.
# A column of another numeric type accepts values that fit: rows that do not fit are refused at the gate, and the others
# are cast. NOT NULL is checked there too. Any other difference is refused at the start.

_BYTES: Final[Mapping[type[DataType], int]] = {ByteType: 1, ShortType: 2, IntegerType: 4, LongType: 8}


@dataclass(frozen=True)
class Fitted:
    """``limits``: of columns, if narrower than declared; ``casts``: the types to which columns are cast."""

    limits: tuple[Limit, ...] = ()
    casts: Mapping[str, str] = field(default_factory=dict)


def fitted(wanted: Wanted, table: TableState) -> Fitted:
    """Return how the columns of a pump go into a table. Raises ``Refused`` (R561) if they never can."""
    problems = [Problem("R561", *misfit) for misfit in _misfits(wanted, table)]
    if problems:
        raise Refused(*problems)
    limits, casts = [], {}
    by_name = {misfit.name: misfit for misfit in table.columns.fields}
    for column in wanted.columns.fields:
        field = by_name[column.name]
        given, taken = column.dataType.simpleString(), field.dataType.simpleString()
        limit = _limit(column.name, given, field.dataType, required=not field.nullable and column.nullable)
        if limit is not None:
            limits.append(limit)
        if given != taken:
            casts[column.name] = taken
    return Fitted(tuple(limits), casts)


def _misfits(wanted: Wanted, table: TableState) -> Iterator[tuple[str, None, str]]:
    """Yield the differences and the fixes, in the form of `Problem`."""
    where, pump, columns = (
        wanted.place,
        wanted.pump,
        {field_of_table.name: field_of_table for field_of_table in table.columns.fields},
    )
    names = ", ".join(columns)
    for column in wanted.columns.fields:
        field = columns.get(column.name)
        if field is None:
            near = next((name for name in columns if name.lower() == column.name.lower()), None)
            hint = f"Its columns are {names}. Add it to the table, or leave it out of the stream."
            what = f"{where} has no column {column.name}, which the pump {pump} writes"
            yield what, None, f"Write it as the table does: {near}." if near else hint
        elif not _may(column.dataType, field.dataType):
            given, taken = (kind.simpleString().upper() for kind in (column.dataType, field.dataType))
            what = f"{where} has {column.name} {taken}, and the pump {pump} writes {given}"
            yield what, None, f"Declare {column.name} {taken} in CREATE STREAM, and cast in the query."
    written = set(wanted.columns.names)
    for field in table.columns.fields:
        if not field.nullable and field.name not in written:
            what = f"{where} has a column {field.name} NOT NULL, for which the pump {pump} has no value"
            yield what, None, f"Add {field.name} to the stream."
    if set(table.partitions) - written:
        what = f"{where} is partitioned by {', '.join(table.partitions)}, which the pump {pump} does not write all of"
        yield what, None, "Add them to the stream."
    if wanted.options.partitions and set(wanted.options.partitions) != set(table.partitions):
        how = f"is partitioned by {', '.join(table.partitions)}" if table.partitions else "has no partitions"
        what = f"{where} {how}, and the pump {pump} writes PARTITIONED BY ({', '.join(wanted.options.partitions)})"
        yield what, None, "Declare what the table has, or leave PARTITIONED BY out."


def _may(given: DataType, taken: DataType) -> bool:
    if given.simpleString() == taken.simpleString():
        return True
    if not (isinstance(given, NumericType) and isinstance(taken, NumericType)):
        return False
    whole = type(given) in _BYTES
    exact = (whole and type(taken) in _BYTES) or (
        isinstance(taken, DecimalType) and (whole or type(given) is type(taken))
    )
    return exact or always_fits(given.simpleString(), taken.simpleString())


def _limit(name: str, given: str, taken: DataType, *, required: bool) -> Limit | None:
    if given == taken.simpleString() or always_fits(given, taken.simpleString()):
        return Limit(name, taken.simpleString(), required=True) if required else None
    if isinstance(taken, DecimalType):
        digits = taken.precision - taken.scale
        return Limit(name, "decimal", digits=digits, scale=taken.scale, required=required)
    return Limit(name, taken.simpleString(), bytes=_BYTES[type(taken)], required=required)
