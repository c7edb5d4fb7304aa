"""A table of a relational database as a sink, through JDBC: each tick is one transaction.

Spark's own writer puts the rows with their sequence numbers into a table beside the target; then one transaction moves
them to the target and records the next number (`table_book`). A tick that is published again after a crash finds its
number there and repeats nothing; after a takeover, the former checkpoint finds that its pump may not write there any
more. If no lock excludes an older driver of the checkpoint, each driver has a table of its own beside the target; the
second of two transactions over the same rows finds that the number has changed, and starts over. Modes: ``append``;
``upsert``, the last row of a key replaces the one before it; ``changes``, a row whose column ``change`` is RETRACT
removes the row of its key.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, DateType, StructField, TimestampNTZType, TimestampType

from rowtime.core.errors import Failure, Problem, RowtimeError, refuse
from rowtime.core.stores import Place
from rowtime.frames.words import quoted
from rowtime.operators.contract import quoted as in_spark
from rowtime.operators.gates.column_limits import Limit
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.plan.bind.sink_options import CHANGE, TableOptions
from rowtime.runtime.sinks.contract import Batch
from rowtime.runtime.sinks.ownership import Claim, Proof, Record, changed, entitled, fenced, tag_of
from rowtime.runtime.sinks.table_book import BOOK, Book, key_of
from rowtime.state.checkpoint import folder_of
from rowtime.state.files import sweep

SEQUENCE: Final = "rowtime_seq"
_STAGES: Final = "rowtime_stage_"
_TRIES: Final = 5


class JdbcSink:
    """The table ``dbtable`` at ``url``; every other option goes to the driver.

    Raises ``Failure`` if the driver is missing (R502) or the database refuses (R501).
    """

    def __init__(self, node: SinkNode) -> None:
        options = TableOptions.of(dict(node.options))
        self._url, self._table, self._driver, self._given = options.url, options.table, options.driver, options.given
        self._key, self._mode = options.key, options.mode
        self._columns = [name for name in node.columns if self._mode != "changes" or name != CHANGE]
        self._name = node.name
        self._folder: Place = Path()
        self._driver_tag = uuid.uuid4().hex[:6]
        self._row = key_of(self._table, node.name.removesuffix(".sink"))
        self._claim: Claim | None = None
        self._owner: Record | None = None
        self.proof: Proof | None = None  # the rows of the table, when it was claimed or last written
        self.limits: list[Limit] | None = None  # of an existing table, as far as the database has reported them
        self._casts: dict[str, str] = {}

    def folder(self, checkpoint: Place) -> Place:
        """Return a folder in the checkpoint, until the next commit."""
        self._folder = checkpoint / "handover" / folder_of(f"jdbc-{self._name}")
        return self._folder

    def recover(self, staged: Sequence[str]) -> None:
        """Remove staged files of crashed ticks; the table has only rows of committed transactions."""
        sweep(self._folder, staged)

    def claim(self, claim: Claim) -> Record:
        """Return the record with which the pump may write. Raises ``Refused``, see `ownership`.

        A pump that has written before may start while the database does not answer: then its first tick claims the
        table.
        """
        self._claim = claim
        try:
            with self._connected(_context()) as connection:
                self.limits = self._read(connection)
                return self._entitled(self._book(connection), connection, claim)
        except Failure as failure:
            if claim.sent is None or any(problem.code != "R501" for problem in failure.problems):
                raise
            return Record(claim.pump, claim.identity, claim.place, claim.at)

    def record(self, record: Record) -> None:
        """Record the owner, before the first row."""
        try:
            with self._connected(_context()) as connection:
                self._owner = self._taken(self._book(connection), connection, record)
                self._clear(connection)
        except Failure as failure:
            if self._claim is None or self._claim.sent is None or failure.problems[0].code != "R501":
                raise

    def beyond(self, tick: int, rows: int) -> str:  # noqa: ARG002 - a table counts rows
        """Report rows that the journal does not know; they would be taken for repeats."""
        claim, mine = self._claim, self._owner
        if claim is None or mine is None:
            return ""
        with self._connected(_context()) as connection:
            next_row = self._book(connection).next_row() or 0
        expected = mine.base if claim.sent is None else claim.next_row
        return f"the table {self._table} has {next_row - expected:,} more of its rows" if next_row > expected else ""

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Move the rows that the table does not have yet, in one transaction."""
        if not batch.count:
            return
        with self._connected(spark) as connection:
            book = self._book(connection)
            mine = self._owner = self._owner or self._late_claim(book, connection)
            after = Proof(batch.first + batch.count, batch.link)
            while (present := book.proof_of(mine.identity)) is None or present.rows < after.rows:
                if present is None:
                    raise self._no_more(book, mine)
                if self.proof is not None and present != self.proof:
                    raise self._of_another_copy(self.proof.rows)
                self._write(spark, batch, max(present.rows, batch.first), self._stage)
                self._move(connection, book, present.rows, after)
            if present.link != batch.link and present.rows == after.rows:
                raise self._of_another_copy(after.rows)
            self.proof = present
        for file in batch.files:
            file.unlink(missing_ok=True)

    # -- the connection ---------------------------------------------------------------

    @contextlib.contextmanager
    def _connected(self, spark: SparkSession | SparkContext) -> Iterator[Any]:
        jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to a class of a driver
        properties = jvm.java.util.Properties()
        for name, value in self._given.items():
            properties.setProperty(name, value)
        try:
            connection = self._driver_of(jvm).connect(self._url, properties)
            if connection is None:
                raise refuse("R504", f"{self._driver} does not understand the url {self._url}")
            try:
                connection.setAutoCommit(False)
                yield connection
            finally:
                connection.close()
        except Py4JJavaError as error:
            raise self._failure(str(error.java_exception.getMessage()).strip()) from error

    def _driver_of(self, jvm: Any) -> Any:
        """Return the driver. The class loader of Spark's jars finds it; ``DriverManager`` would not."""
        try:
            loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
            return loader.loadClass(self._driver).getDeclaredConstructor(None).newInstance(None)
        except Py4JJavaError as error:
            hint = "Start the session with spark.jars set to rowtime.runtime.jars.jdbc_jars(url), or to the driver's."
            raise Failure(Problem("R502", f"{self._driver} is not on Spark's class path", hint=hint)) from error

    def _failure(self, what: str) -> Failure:
        hint = "Check url, user, password and the table; the tick's rows are written again."
        return Failure(Problem("R501", f"the table {self._table} cannot be written: {what}", hint=hint))

    @property
    def _prefix(self) -> str:
        """Return the schema of the target, with its dot: rowtime's tables are beside it."""
        return self._table.rpartition(".")[0] + "." if "." in self._table else ""

    @property
    def _stage(self) -> str:
        """Return the table beside the target that this process writes."""
        return f"{self._prefix}{self._stages}{self._driver_tag}"

    @property
    def _stages(self) -> str:
        """Return the common prefix of these tables' names, of all processes that have run this checkpoint."""
        assert self._owner is not None
        return f"{_STAGES}{tag_of(self._owner.identity, self._row)}_"

    @property
    def _postgres(self) -> bool:
        return self._url.startswith("jdbc:postgresql:")

    # -- ownership --------------------------------------------------------------------

    def _book(self, connection: Any) -> Book:
        book = Book(connection, self._prefix, self._row)
        book.prepare()
        return book

    def _entitled(self, book: Book, connection: Any, claim: Claim) -> Record:
        """Return the record with which the pump may write. A dropped table's record excludes nobody.

        Raises ``Refused``: R440, R441; R564 if the database lacks rows that it was given.
        """
        record = book.record(claim.pump, claim.identity)
        content, exists = book.contents(), self._exists(connection, self._table)
        if claim.least and (record is None or record.identity == claim.identity):
            present = book.proof_of(claim.identity) or Proof(0, "")
            if present.rows < claim.least or not exists:
                state = f"has {present.rows:,} of them" if exists else "is gone"
                raise changed(claim.pump, f"the table {self._table}", claim.least, state)
            if not claim.knows(present.link) and present.rows <= claim.next_row:
                raise self._of_another_copy(claim.least)
            self.proof = present
        if not exists and (record is None or book.next_row()):
            claim, content = replace(claim, take_over=True), None
        return entitled(record, claim, f"the table {self._table}", lambda: content)

    def _of_another_copy(self, rows: int) -> RowtimeError:
        pump = self._name.removesuffix(".sink")
        return changed(pump, f"the table {self._table}", rows, "has those of another copy of the checkpoint")

    def _taken(self, book: Book, connection: Any, record: Record) -> Record:
        """Store a record, unless it is stored; raises ``Refused`` if another process was faster."""
        for _ in range(_TRIES):
            now = book.record(record.pump, record.identity)
            if now is not None and now.identity == record.identity:
                return now
            before = record.before[-1]["identity"] if record.before else None
            if before == (None if now is None else now.identity) and book.write(record, before):
                return record
            assert self._claim is not None
            record = self._entitled(book, connection, self._claim)
        raise self._failure(f"other pipelines change {BOOK} all the time")

    def _no_more(self, book: Book, mine: Record) -> RowtimeError:
        """Return the error to raise if the book no longer has the pump."""
        now, self._owner = book.record(mine.pump, mine.identity), None
        if now is None:
            return self._failure(f"its row of {BOOK} is gone")
        return fenced(now, f"the table {self._table}")

    def _late_claim(self, book: Book, connection: Any) -> Record:
        """Claim the table when the database answers again."""
        assert self._claim is not None
        return self._taken(book, connection, self._entitled(book, connection, self._claim))

    def _clear(self, connection: Any) -> None:
        """Drop the tables beside the target that crashed processes left."""
        schema = self._prefix.removesuffix(".").strip('"') or None
        for pattern in (self._stages, self._stages.upper()):
            tables = connection.getMetaData().getTables(None, schema, pattern.replace("_", "\\_") + "%", None)
            names = []
            while tables.next():
                names.append(tables.getString("TABLE_NAME"))
            for name in names:
                self._do(connection, f"DROP TABLE {self._prefix}{name}")
        connection.commit()

    # -- the target ---------------------------------------------------------------------

    def _read(self, connection: Any) -> list[Limit]:
        """Return the limits of the table's columns; none without a table. Raises R547 for a missing column."""
        if not self._exists(connection, self._table):
            return []  # it is created with the declared columns of the stream
        answer = connection.createStatement().executeQuery(f"SELECT * FROM {self._table} WHERE 1 = 0")  # noqa: S608
        limits = list(limits_of(answer.getMetaData()))
        names = [limit.name for limit in limits]
        if missing := [name for name in self._columns if name not in names]:
            pump = self._name.removesuffix(".sink")
            what = f"the table {self._table} has no column {missing[0]}, which the pump {pump} writes"
            raise refuse(
                "R547",
                what,
                f"Its columns are {', '.join(names)}. Add {missing[0]} to it, or leave it out of the stream.",
            )
        return [limit for limit in limits if limit.name in self._columns]

    def _exists(self, connection: Any, table: str) -> bool:
        try:
            connection.createStatement().executeQuery(f"SELECT 1 FROM {table} WHERE 1 = 0")  # noqa: S608
        except Py4JJavaError:
            connection.rollback()
            return False
        return True

    def _do(self, connection: Any, text: str) -> None:
        statement = connection.createStatement()
        try:
            statement.execute(text)
        finally:
            statement.close()

    # -- the transaction --------------------------------------------------------------

    def _write(self, spark: SparkSession, batch: Batch, first: int, stage: str) -> None:
        """Write the rows from ``first`` on, with their numbers, to a table of their own."""
        table = batch.table()
        numbers = pa.array(np.arange(batch.first, batch.first + batch.count))
        table = table.append_column(SEQUENCE, numbers).slice(first - batch.first)
        rows = spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
        if self._postgres and "createtablecolumntypes" not in {name.lower() for name in self._given}:
            self._casts = {field.name: kind for field in rows.schema if (kind := time_type(field.dataType))}
            rows = rows.selectExpr(*(as_text(f) if f.name in self._casts else in_spark(f.name) for f in rows.schema))
        options = {**self._given, "url": self._url, "driver": self._driver, "dbtable": stage}
        try:
            rows.write.format("jdbc").options(**options).mode("overwrite").save()
        except (PySparkException, Py4JJavaError) as error:
            raise self._failure(str(error).split("\n", 1)[0]) from error

    def _rows(self, stage: str) -> str:
        """Return the staged rows with their times, which are stored as texts."""
        if not self._casts:
            return stage
        names = dict.fromkeys([*self._columns, *self._casts, *([CHANGE] if self._mode == "changes" else [])])
        given = ((quoted(name), self._casts.get(name)) for name in names)
        columns = (f"CAST({name} AS {kind}) AS {name}" if kind else name for name, kind in given)
        return f"(SELECT {', '.join(columns)}, {SEQUENCE} FROM {stage})"  # noqa: S608

    def _move(self, connection: Any, book: Book, before: int, after: Proof) -> None:
        """Move the staged rows in one transaction, if the book still has the number ``before``."""
        assert self._owner is not None
        stage = self._stage
        exists = self._exists(connection, self._table)  # outside of the transaction, which it may roll back
        if not book.advance(self._owner.identity, before, after):
            connection.rollback()
            self._do(connection, f"DROP TABLE {stage}")
            connection.commit()
            return
        rows = self._rows(stage)
        if self._postgres:  # so that a timestamp without time zone is in UTC
            self._do(connection, "SET TIME ZONE 'UTC'")
        columns = ", ".join(map(quoted, self._columns))
        if not exists:
            self._do(connection, f"CREATE TABLE {self._table} AS SELECT {columns} FROM {rows} s WHERE 1 = 0")  # noqa: S608
            if self._key:
                keys = ", ".join(map(quoted, self._key))
                index = f"rowtime_key_{tag_of(self._owner.identity, self._row)}"
                self._do(connection, f"CREATE UNIQUE INDEX {index} ON {self._table} ({keys})")
        for text in self._moves(rows, columns):
            self._do(connection, text)
        connection.commit()
        self._do(connection, f"DROP TABLE {stage}")
        connection.commit()

    def _moves(self, rows: str, columns: str) -> Iterator[str]:
        """Yield the statements that move the rows: with a key, the last row of each replaces the present one."""
        if not self._key:
            yield f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM {rows} s ORDER BY {SEQUENCE}"  # noqa: S608
            return
        keys = list(map(quoted, self._key))
        equal = " AND ".join(f"s.{key} = t.{key}" for key in keys)
        same = " AND ".join(f"(s.{key} = t.{key} OR (s.{key} IS NULL AND t.{key} IS NULL))" for key in keys)
        null = " OR ".join(f"s.{key} IS NULL" for key in keys)
        target = f"{self._table} AS t" if self._postgres else f"{self._table} t"
        yield f"DELETE FROM {target} WHERE EXISTS (SELECT 1 FROM {rows} s WHERE {equal})"  # noqa: S608
        yield f"DELETE FROM {target} WHERE EXISTS (SELECT 1 FROM {rows} s WHERE ({null}) AND {same})"  # noqa: S608
        kept = f" AND s.{quoted(CHANGE)} <> 'RETRACT'" if self._mode == "changes" else ""
        last = f"SELECT max({SEQUENCE}) FROM {rows} s GROUP BY {', '.join(keys)}"  # noqa: S608
        yield (
            f"INSERT INTO {self._table} ({columns}) "  # noqa: S608
            f"SELECT {columns} FROM {rows} s WHERE s.{SEQUENCE} IN ({last}){kept}"
        )


def _context() -> Any:
    return SparkContext._active_spark_context  # noqa: SLF001 - the public way makes a new context


# Constants of java.sql.Types.
_TEXTS: Final = (1, 12, -1, -9, -15)
_WHOLE: Final = {-6: 1, 5: 2, 4: 4, -5: 8}  # and the bytes of their values
_DECIMALS: Final = (2, 3)
_UNLIMITED: Final = 2**31 - 1
_NO_NULLS: Final = 0


def limits_of(metadata: Any) -> Iterator[Limit]:
    """Yield the columns of a result set (``java.sql.ResultSetMetaData``)."""
    for at in range(1, metadata.getColumnCount() + 1):
        kind, precision, scale = metadata.getColumnType(at), metadata.getPrecision(at), metadata.getScale(at)
        sized = 0 < precision < _UNLIMITED
        decimal = kind in _DECIMALS and sized
        yield Limit(
            str(metadata.getColumnName(at)),
            str(metadata.getColumnTypeName(at)),
            characters=precision if kind in _TEXTS and sized else None,
            bytes=_WHOLE.get(kind),
            signed=bool(metadata.isSigned(at)) or kind not in _WHOLE,
            digits=precision - scale if decimal else None,
            scale=scale if decimal else 0,
            required=metadata.isNullable(at) == _NO_NULLS,
        )


# Times for PostgreSQL: as texts, because Java's own dates skip ten days of October 1582.
#
# ``java.sql.Timestamp`` and ``java.sql.Date`` use the Julian calendar before 1582-10-15, so Spark's writer shifts the
# times of the skipped days. Spark and PostgreSQL both always use the Gregorian calendar.

_TYPES: Mapping[type[DataType], str] = {
    DateType: "DATE",
    TimestampType: "TIMESTAMP WITH TIME ZONE",
    TimestampNTZType: "TIMESTAMP",
}
_PATTERNS: Mapping[type[DataType], str] = {
    DateType: "yyyy-MM-dd",
    TimestampType: "yyyy-MM-dd HH:mm:ss.SSSSSS",
    TimestampNTZType: "yyyy-MM-dd HH:mm:ss.SSSSSS",
}


def time_type(kind: DataType) -> str | None:
    """Return PostgreSQL's name of a time type, or of an array of one; ``None`` for other types."""
    if isinstance(kind, ArrayType):
        of = _TYPES.get(type(kind.elementType))
        return f"{of}[]" if of else None
    return _TYPES.get(type(kind))


def as_text(field: StructField) -> str:
    """Return Spark SQL of a time column as texts that PostgreSQL can parse, with the era."""
    name = "`" + field.name.replace("`", "``") + "`"
    if isinstance(field.dataType, ArrayType):
        return f"transform({name}, __x -> {_text('__x', field.dataType.elementType)}) AS {name}"
    return f"{_text(name, field.dataType)} AS {name}"


def _text(value: str, kind: DataType) -> str:
    zone = "+00 " if isinstance(kind, TimestampType) else " "
    text = f"trim(LEADING '+' FROM date_format({value}, '{_PATTERNS[type(kind)]}'))"
    return f"concat({text}, '{zone}', date_format({value}, 'G'))"
