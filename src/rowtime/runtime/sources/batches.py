"""A streaming DataFrame as a source: Spark's ``foreachBatch`` delivers one batch per tick.

If columns for writer and position are given, they define the order of the rows, and a writer is known from its first
row on. If a position is a structure, as that of a row in files, rows are numbered from the start of the stream.
Without a position column, a batch is an unordered set: its rows are judged against the clock before the batch, so no
row is refused for an order that does not exist. The source's notes record which batches are done, because after a
restart Spark delivers batches again that it had not committed itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructType

from rowtime.core.columns import ARRIVAL, PLACE_NUMBER, POSITION, READ_NUMBER, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.operators.contract import micros, quoted
from rowtime.runtime.sources.contract import Limits, Offsets, Slice, Source

THE_WRITER = "batches"
SET_BITS = 40  # the position of a row in an unordered batch consists of the batch's number and the row's


class _Batch(NamedTuple):
    """A batch from Spark; ``spans`` are the positions [first, end) of each writer.

    ``places``: those of the first and the last row, if they are structures.
    """

    number: int
    rows: DataFrame
    size: int
    spans: Mapping[str, tuple[int, int]]
    places: tuple[Sequence[Any], Sequence[Any]] | None = None


class BatchSource(Source):
    """The batches of one streaming DataFrame; ``names`` are its rowtime, writer and position columns.

    ``clock`` returns when a batch arrives (µs UTC); ``columns`` are those to read, all by default. Raises ``Refused``
    (R103) if the DataFrame lacks a named column.
    """

    in_band = False
    decodes = False
    steady = True

    def __init__(
        self,
        frame: DataFrame,
        names: Mapping[str, str | None],
        clock: Callable[[], int],
        columns: Sequence[str] | None = None,
    ) -> None:
        self.frame = frame
        self._columns = [field.name for field in frame.schema.fields] if columns is None else [*columns]
        self._rowtime, self._writer, self._position = names["rowtime"], names["writer"], names["position"]
        self._check(names)
        self._clock = clock
        self.gives_rowtime = self._rowtime is not None
        self.batched = self._position is None
        types = {field.name.lower(): field.dataType for field in frame.schema.fields}
        self._numbered = isinstance(types.get((self._position or "").lower()), StructType)
        self._pending: _Batch | None = None

    def in_order(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a batch with their numbers in it, if their places are structures."""
        if not self._numbered:
            return rows
        # Rows of one place are in a partition of Spark, in their order. One partition of the window has all rows.
        read = rows.selectExpr("*", f"monotonically_increasing_id() AS {READ_NUMBER}")
        order = f"PARTITION BY {READ_NUMBER} < 0 ORDER BY {self._place}, {READ_NUMBER}"
        return read.selectExpr(*map(quoted, rows.columns), f"row_number() OVER ({order}) - 1 AS {PLACE_NUMBER}")

    def hand(self, number: int, rows: DataFrame) -> None:
        """Make a batch the next range; it stays until it is dropped. Its rows are read several times.

        Raises ``Failure`` (R505) if a row has no position; ``discover`` does if positions go back.
        """
        placed = "count(1)" if self._position is None else f"count({quoted(self._position)})"
        texts = ["count(1) AS n", f"{placed} AS known", f"min({self._place}) AS first", f"max({self._place}) AS last"]
        counts = rows.selectExpr("*", f"{self._who} AS {WRITER}").groupBy(WRITER).agg(*map(F.expr, texts)).collect()
        missing = sum(row["n"] - row["known"] for row in counts)
        if missing:
            raise _disordered(f"{missing} rows of a batch have no position: their {self._position} is null")
        base = number << SET_BITS
        whole = (base, base + (1 << SET_BITS))
        size, places = sum(row["n"] for row in counts), None
        if self._numbered:
            spans = {row[WRITER]: (0, size) for row in counts}
            places = (min(row["first"] for row in counts), max(row["last"] for row in counts)) if counts else None
        else:
            spans = {row[WRITER]: whole if self.batched else (row["first"], row["last"] + 1) for row in counts}
        self._pending = _Batch(number, rows, size, spans, places)

    def drop(self) -> None:
        """Forget the batch: its tick is over."""
        self._pending = None

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:  # noqa: ARG002 - a batch is one range
        """Return the pending batch, unless an earlier start has committed it already."""
        batch = self._pending
        if batch is None or batch.number < state.get("next", 0):
            return Slice(start, start, rows=0), state
        earlier = state.get("rows", 0)
        if self._numbered:
            _check_files(batch.places, state.get("last"))
            batch = batch._replace(
                spans={w: (first + earlier, after + earlier) for w, (first, after) in batch.spans.items()}
            )
        back = [f"{w!r} from {start[w]} to {first}" for w, (first, _) in batch.spans.items() if first < start.get(w, 0)]
        if back:
            raise _disordered(f"positions ({self._position}) go back, of the writers {', '.join(back)}")
        begin = {**{w: min(0, first) for w, (first, _) in batch.spans.items()}, **start}
        end = {**start, **{w: after for w, (_, after) in batch.spans.items()}}
        # The arrival time is when the batch was delivered; later items of any writer arrive later.
        now = max(self._clock(), state.get("arrival", 0))
        part = Slice(
            begin, end, arrived=dict.fromkeys(end, now), rows=batch.size, detail={"arrival": now, "earlier": earlier}
        )
        notes: dict[str, Any] = {"next": batch.number + 1, "arrival": now}
        if self._numbered:
            notes |= {"rows": earlier + batch.size, "last": [*batch.places[1]] if batch.places else state.get("last")}
        return part, notes

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:  # noqa: ARG002
        """Raise ``Refused`` (R407): Spark does not deliver a committed batch again."""
        raise refuse(
            "R407",
            "a streaming DataFrame can be read only once",
            "Only pipelines over stream logs, files, Kafka and rate can be run again from their checkpoint.",
        )

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the rows of the pending batch, in rowtime's own session."""
        assert self._pending is not None
        names = [quoted(name) for name in self._columns]
        given = f"CAST({quoted(self._rowtime)} AS TIMESTAMP)" if self._rowtime else "CAST(NULL AS TIMESTAMP)"
        place = self._place
        if self._numbered:
            place = f"{part.detail['earlier']}L + {PLACE_NUMBER}"
        elif self.batched:
            # The hash makes the numbers depend on the rows, not on how Spark distributed them.
            order = f"{given}, xxhash64({', '.join(names)})"
            place = (
                f"{self._pending.number << SET_BITS}L + row_number() OVER (PARTITION BY {self._who} ORDER BY {order})"
            )
        return rehomed(self._pending.rows, spark).selectExpr(
            *names,
            f"{given} AS {ROWTIME}",
            f"{self._who} AS {WRITER}",
            f"{place} AS {POSITION}",
            f"{micros(part.detail['arrival'])} AS {ARRIVAL}",
        )

    def finished(self, at: Offsets) -> bool:  # noqa: ARG002
        """Return False: only Spark knows whether a streaming DataFrame has ended."""
        return False

    def _check(self, names: Mapping[str, str | None]) -> None:
        columns = [field.name for field in self.frame.schema.fields]
        present = {name.lower() for name in columns}
        problems = [
            Problem(
                "R103", f"the DataFrame has no column {name} ({use})", hint=f"Its columns are {', '.join(columns)}."
            )
            for use, name in names.items()
            if name is not None and name.lower() not in present
        ]
        if problems:
            raise Refused(*problems)

    @property
    def _who(self) -> str:
        """Return SQL: the writer of a row; null is a writer without a name."""
        return f"coalesce(CAST({quoted(self._writer)} AS STRING), '')" if self._writer else f"'{THE_WRITER}'"

    @property
    def _place(self) -> str:
        """Return SQL: the position of a row, if there is one."""
        if self._position is None:
            return "0L"
        return quoted(self._position) if self._numbered else f"CAST({quoted(self._position)} AS BIGINT)"


def _check_files(places: tuple[Sequence[Any], Sequence[Any]] | None, last: Sequence[Any] | None) -> None:
    """Refuse files whose order depends on the batches: Spark takes files of one time of change in any order."""
    if places is None or last is None:
        return
    (at, path, _), before = places[0], last[1]
    if at == last[0] and path < before:
        what = f"{path} has the same time of change as {before}, which an earlier batch had, and sorts before it"
        hint = "Give the files different times of change, or read them with CREATE STREAM … USING."
        raise Failure(Problem("R505", f"{what}: Spark takes such files in any order", hint=hint))


def _disordered(what: str) -> Failure:
    hint = "Name columns that number the rows of each writer, each row once and ascending, as Kafka's offset does."
    return Failure(Problem("R505", what, hint=hint))


def rehomed(rows: DataFrame, spark: SparkSession) -> DataFrame:
    """Return the same rows in another session, so that expressions on top are resolved in UTC."""
    jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no public way to do this
    plan = rows._jdf.queryExecution().analyzed()  # noqa: SLF001
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)  # noqa: SLF001
