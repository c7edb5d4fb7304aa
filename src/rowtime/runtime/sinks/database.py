"""A table of a relational database as a sink, through JDBC: each tick is one transaction.

Spark's own writer puts the rows with their sequence numbers into a table beside the target; then
one transaction moves them over and notes the number that comes next (`rowtime_sinks`). A tick that
is published again after a crash finds its number there and repeats nothing. Modes: ``append``;
``upsert``, the last row of a key replaces the one before it; ``changes``, a row whose column
``change`` is RETRACT takes the row of its key away.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_schema

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.plan.sink_options import CHANGE, TableOptions
from rowtime.runtime.sinks.table_limits import Limit, limits_of
from rowtime.runtime.sinks.table_times import as_text, time_type
from rowtime.state.checkpoint import folder_of
from rowtime.state.files import make_folder, sweep, write_over

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.sink import Sink as SinkNode
    from rowtime.runtime.sinks.contract import Batch

SEQUENCE: Final = "rowtime_seq"
BOOK: Final = "rowtime_sinks"
_IDENTITY: Final = "identity"


class JdbcSink:
    """The table ``dbtable`` at ``url``; every other option goes to the driver.

    Raises ``Failure`` where the driver is missing (R502) or the database refuses (R501).
    """

    def __init__(self, node: SinkNode) -> None:
        options = TableOptions.of(dict(node.options))
        self._url, self._table, self._driver, self._given = options.url, options.table, options.driver, options.given
        self._key, self._mode = options.key, options.mode
        self._columns = [name for name in node.columns if self._mode != "changes" or name != CHANGE]
        self._name, self._folder = node.name, Path()
        self._limits: list[Limit] | None = None
        self._casts: dict[str, str] = {}

    def folder(self, checkpoint: Path) -> Path:
        """In the checkpoint, until the next commit."""
        self._folder = checkpoint / "handover" / folder_of(f"jdbc-{self._name}")
        return self._folder

    def recover(self, staged: Sequence[str]) -> None:
        """Remove what crashed ticks staged; the table has nothing but what a transaction gave it."""
        sweep(self._folder, (*staged, _IDENTITY))

    def check(self, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002 - the contract's
        """Refuse (R545) rows with a value that the table does not take, while nothing of their tick is committed."""
        context: Any = SparkContext._active_spark_context  # noqa: SLF001 - the public way makes a new context
        limits = self._limits
        if limits is None:
            with self._connected(context) as connection:
                if not self._exists(connection, self._table):
                    return  # it is made of the columns that the stream declares
                asked = connection.createStatement().executeQuery(f"SELECT * FROM {self._table} WHERE 1 = 0")  # noqa: S608
                limits = self._limits = [one for one in limits_of(asked.getMetaData()) if one.name in self._columns]
        table = batch.table() if limits else None
        for limit in limits:
            assert table is not None
            at = limit.beyond(table[limit.name])
            if at is not None:
                value = table[limit.name][at].as_py()
                shown = "NULL" if value is None else f"{value!r:.60}"
                what = f"row {batch.first + at} of {self._name}: the column {limit.name} of {self._table} is {limit}"
                hint = (
                    "Declare the column of the stream as the table has it, which refuses such rows; or widen the table."
                )
                raise refuse("R545", f"{what}, and does not take {shown}", hint)

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Move the rows that the table does not have yet, in one transaction."""
        if not batch.count:
            return
        with self._connected(spark) as connection:
            sink = self._identity()
            there = self._there(connection, sink)
            after = batch.first + batch.count
            if there < after:
                stage = f"{self._prefix}rowtime_stage_{sink[-12:]}"
                self._write(spark, batch, max(there, batch.first), stage)
                self._move(connection, stage, sink, after)
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
            connection = self._made(jvm).connect(self._url, properties)
            if connection is None:
                raise refuse("R504", f"{self._driver} does not understand the url {self._url}")
            try:
                connection.setAutoCommit(False)
                yield connection
            finally:
                connection.close()
        except Py4JJavaError as error:
            raise self._failure(str(error.java_exception.getMessage()).strip()) from error

    def _made(self, jvm: Any) -> Any:
        """The driver. It comes by the loader of Spark's jars; ``DriverManager`` would not see it there."""
        try:
            loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
            return loader.loadClass(self._driver).getDeclaredConstructor(None).newInstance(None)
        except Py4JJavaError as error:
            hint = "Start the session with spark.jars set to rowtime.runtime.jars.jdbc_jars(url), or to the driver's."
            raise Failure(Problem("R502", f"{self._driver} is not on Spark's class path", hint=hint)) from error

    def _failure(self, what: str) -> Failure:
        hint = "Check url, user, password and the table; the tick's rows are written again."
        return Failure(Problem("R501", f"the table {self._table} cannot be written: {what}", hint=hint))

    # -- what is there ----------------------------------------------------------------

    @property
    def _prefix(self) -> str:
        """The schema of the target, with its dot: our tables stand beside it."""
        return self._table.rpartition(".")[0] + "." if "." in self._table else ""

    @property
    def _postgres(self) -> bool:
        return self._url.startswith("jdbc:postgresql:")

    def _identity(self) -> str:
        """The sink's name in the database; a new checkpoint is another sink, which begins anew."""
        path = self._folder / _IDENTITY
        if not path.exists():
            make_folder(path.parent)
            write_over(path, f"{folder_of(self._name)}-{uuid.uuid4().hex}".encode())
        return path.read_text()

    def _there(self, connection: Any, sink: str) -> int:
        """The sequence number that comes next."""
        book = f"{self._prefix}{BOOK}"
        if not self._exists(connection, book):
            self._do(connection, f"CREATE TABLE {book} (sink VARCHAR(400) PRIMARY KEY, next_row BIGINT NOT NULL)")
            connection.commit()
        found = connection.createStatement().executeQuery(f"SELECT next_row FROM {book} WHERE sink = '{sink}'")  # noqa: S608 - a name of our own
        if found.next():
            return int(found.getLong(1))
        self._do(connection, f"INSERT INTO {book} VALUES ('{sink}', 0)")  # noqa: S608
        connection.commit()
        return 0

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
        """The rows from ``first`` on, with their numbers, in a table of their own."""
        table = batch.table()
        numbers = pa.array(np.arange(batch.first, batch.first + batch.count))
        table = table.append_column(SEQUENCE, numbers).slice(first - batch.first)
        rows = spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
        if self._postgres and "createtablecolumntypes" not in {name.lower() for name in self._given}:
            self._casts = {field.name: kind for field in rows.schema if (kind := time_type(field.dataType))}
            rows = rows.selectExpr(*(as_text(f) if f.name in self._casts else _ticked(f.name) for f in rows.schema))
        options = {**self._given, "url": self._url, "driver": self._driver, "dbtable": stage}
        try:
            rows.write.format("jdbc").options(**options).mode("overwrite").save()
        except (PySparkException, Py4JJavaError) as error:
            raise self._failure(str(error).split("\n", 1)[0]) from error

    def _rows(self, stage: str) -> str:
        """The staged rows with their times, which stand there as texts."""
        if not self._casts:
            return stage
        names = dict.fromkeys([*self._columns, *self._casts, *([CHANGE] if self._mode == "changes" else [])])
        given = ((_quoted(name), self._casts.get(name)) for name in names)
        columns = (f"CAST({name} AS {kind}) AS {name}" if kind else name for name, kind in given)
        return f"(SELECT {', '.join(columns)}, {SEQUENCE} FROM {stage})"  # noqa: S608

    def _move(self, connection: Any, stage: str, sink: str, after: int) -> None:
        rows = self._rows(stage)
        if self._postgres:  # so that a timestamp without zone is that of UTC
            self._do(connection, "SET TIME ZONE 'UTC'")
        columns = ", ".join(map(_quoted, self._columns))
        if not self._exists(connection, self._table):
            self._do(connection, f"CREATE TABLE {self._table} AS SELECT {columns} FROM {rows} s WHERE 1 = 0")  # noqa: S608
            if self._key:
                keys = ", ".join(map(_quoted, self._key))
                self._do(connection, f"CREATE UNIQUE INDEX rowtime_key_{sink[-12:]} ON {self._table} ({keys})")
        for text in self._moves(rows, columns):
            self._do(connection, text)
        self._do(connection, f"UPDATE {self._prefix}{BOOK} SET next_row = {after} WHERE sink = '{sink}'")  # noqa: S608
        connection.commit()
        self._do(connection, f"DROP TABLE {stage}")
        connection.commit()

    def _moves(self, rows: str, columns: str) -> Iterator[str]:
        """The statements that take the rows over: of each key the last one, in place of what it had."""
        if not self._key:
            yield f"INSERT INTO {self._table} ({columns}) SELECT {columns} FROM {rows} s ORDER BY {SEQUENCE}"  # noqa: S608
            return
        keys = list(map(_quoted, self._key))
        equal = " AND ".join(f"s.{key} = t.{key}" for key in keys)
        same = " AND ".join(f"(s.{key} = t.{key} OR (s.{key} IS NULL AND t.{key} IS NULL))" for key in keys)
        null = " OR ".join(f"s.{key} IS NULL" for key in keys)
        target = f"{self._table} AS t" if self._postgres else f"{self._table} t"
        yield f"DELETE FROM {target} WHERE EXISTS (SELECT 1 FROM {rows} s WHERE {equal})"  # noqa: S608
        yield f"DELETE FROM {target} WHERE EXISTS (SELECT 1 FROM {rows} s WHERE ({null}) AND {same})"  # noqa: S608
        kept = f" AND s.{_quoted(CHANGE)} <> 'RETRACT'" if self._mode == "changes" else ""
        last = f"SELECT max({SEQUENCE}) FROM {rows} s GROUP BY {', '.join(keys)}"  # noqa: S608
        yield (
            f"INSERT INTO {self._table} ({columns}) "  # noqa: S608
            f"SELECT {columns} FROM {rows} s WHERE s.{SEQUENCE} IN ({last}){kept}"
        )


def _ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
