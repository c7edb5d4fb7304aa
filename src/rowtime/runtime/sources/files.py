"""A directory of CSV, JSON or Parquet files: one writer, whose files are numbered as found.

Files get their numbers when they are discovered, by (modification time, name) among those found together; a file that
appears later comes after them, whatever its name or time (`numbering`). The position of a row is its file's number and
its row number in the file. Plain CSV and JSON files are decoded when they are taken, and read like Parquet
(`plain_files`); Parquet files with nanoseconds are copied for Spark (`nanoseconds`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.client.arrow_types import INSTANT, arrow_type
from rowtime.core.columns import ARRIVAL, MALFORMED, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.shared_paths import local
from rowtime.core.stores import Place, on_store
from rowtime.expr.store_assignment import as_read
from rowtime.frames.kinds import is_read, named
from rowtime.operators.contract import quoted
from rowtime.plan.bind.sink_options import partitions_of
from rowtime.plan.formats.files import FAILFAST, GLOB, GROWING, MODE_OF_RECORDS, OF_ROWTIME
from rowtime.runtime.sources.contract import Backlog, Division, Given, Limits, Offsets, Scan, Slice, Source
from rowtime.runtime.sources.csv_header import by_header
from rowtime.runtime.sources.file_faults import Expected
from rowtime.runtime.sources.file_globs import Chosen, below_glob
from rowtime.runtime.sources.file_list import NumberedFile, is_unchanged, present
from rowtime.runtime.sources.file_places import COMPRESSED, as_pattern, origin_of, rows_of
from rowtime.runtime.sources.file_shares import groups_of, paths_of, shares_of
from rowtime.runtime.sources.grown_parts import GrownParts
from rowtime.runtime.sources.json_numbers import JsonNumbers
from rowtime.runtime.sources.nanoseconds import Nanoseconds
from rowtime.runtime.sources.numbering import Numbering, noted
from rowtime.runtime.sources.parquet_rows import OURS, FileRows, columns
from rowtime.runtime.sources.partition_values import FEW_FILES, ROWS_BITS, constants_of, with_partitions
from rowtime.runtime.sources.plain_files import lines_in
from rowtime.runtime.sources.statistics import unskipped
from rowtime.runtime.sources.tick_copies import TickCopies, copies_of
from rowtime.sql.generate import literal

THE_WRITER = "files"

# The position of a row, in a form that Catalyst prunes if no operator uses it. `_metadata` has it too, but once it is
# named, every row gets all of it (docs/design/tick-cost.md).
_ROW_INDEX = "_tmp_metadata_row_index"  # the column that Spark's Parquet reader fills for `_metadata.row_index`
_PLACE_OF_ROW = "input_file_name()"
_DECODED_PLACE = "url_decode(replace(input_file_name(), '+', '%2B'))"
_PLAIN = re.compile(r"[A-Za-z0-9/_.=,:-]*")  # paths with the same spelling in a URL
_MOST_SHOWN = 200  # characters of a record in a message
_CORRECT = (
    "Correct the file and start again: nothing of this tick is committed. Or use mode 'PERMISSIVE', which refuses such "
    "records as MALFORMED and continues."
)
_NO_PLACE = "CAST(raise_error('rowtime: a row without its place in the files') AS BIGINT)"
_HIDDEN = ((ROWTIME, "timestamp"), (WRITER, "string"), (POSITION, "bigint"), (ARRIVAL, "timestamp"))


class FilesSource(Source):
    """Files as a ``Source``; ``notes`` is the folder of their numbers.

    ``from_now``: files that exist at the first start are not read.
    """

    in_band = False
    steady = True
    copies = True
    writer = THE_WRITER

    def __init__(
        self,
        kind: str,
        options: Mapping[str, str],
        columns: Sequence[tuple[str, str]],
        notes: Place,
        *,
        from_now: bool = False,
    ) -> None:
        if "path" not in options:
            raise refuse("R207", f"a {kind} source needs a path", "Add OPTIONS (path '/data/in').")
        self.kind, self.columns, self.notes, self.from_now = kind, list(columns), notes, from_now
        self.path, glob = _place_at(options["path"])
        self.rowtime = options.get("rowtime.column", "")
        own = {*OF_ROWTIME, GLOB, MODE_OF_RECORDS}
        self._options = {key: value for key, value in options.items() if key.lower() not in own}
        name = next((value for key, value in options.items() if key.lower() == GLOB), "*")
        self.gives_rowtime = bool(self.rowtime)
        split = partitions_of(kind, options.items())
        self._partitions = {name: of for name, of in columns if name in split}
        self._wanted = {name: of for name, of in columns if name not in split}
        if self.gives_rowtime and self.rowtime.lower() not in {name.lower() for name in self._wanted}:
            self._wanted[self.rowtime] = "TIMESTAMP"
        here = isinstance(notes, Path) and self.copies
        copies = copies_of(kind, self._wanted, self._options, options) if here else None
        self.copied = TickCopies(copies, Path(str(notes)).absolute() / "decoded", late=kind == "parquet")
        copied = isinstance(copies, Nanoseconds)
        expected = Expected(kind, self._wanted, self.rowtime, self._options, str(self.path), self._partitions, copied)
        self._numbers = partial(JsonNumbers.of, (*self._wanted.items(),) if kind == "json" else (), options)
        given = {key.lower(): value for key, value in options.items()}
        self._fails_fast = given.get(MODE_OF_RECORDS, "").upper() == FAILFAST
        growing = given.get(GROWING, "").lower() == "true"
        chosen = Chosen.of(self.path, glob, name)
        self._numbering = Numbering(self.path, notes, expected, chosen, growing=growing)
        self._parts = GrownParts(notes, has_header=kind == "csv" and given.get("header", "").lower() == "true")
        self._taken: Sequence[NumberedFile] = ()
        self._parsed: list[DataFrame] = []
        self._keeps = True

    @property
    def decodes(self) -> bool:
        """True if the last range has text that Spark has to read, or that nobody has read yet."""
        return self.kind != "parquet" and not self.copied.complete

    @property
    def waits(self) -> bool:
        """True if the last range has text that nobody has read yet."""
        return self.kind != "parquet" and self.copied.waiting

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:
        """Number new files and take the next ones, within the limits, at least one."""
        first, numbering = start.get(self.writer, 0), self._numbering
        numbering.load(state)
        if self.from_now and "listed" not in state:  # present files are numbered, but not read
            numbering.pass_over()
            ends = {self.writer: numbering.count}
            return Slice(ends, ends, rows=0, detail={"files": []}), numbering.state(state, numbering.count, ())
        taken = self._taken = numbering.take(first, limits)
        backlog = Backlog("bytes", sum(file.length for file in taken), numbering.size_from(first + len(taken)))
        return replace(self.slice_of(first, taken), backlog=backlog), numbering.state(state, first, taken)

    def blame(self, error: BaseException) -> bool:
        """Return True if files that were taken last caused a failure, and another try skips them."""
        return self._numbering.blame(error, self._taken)

    def slice_of(self, first: int, taken: Sequence[NumberedFile]) -> Slice:
        """Return the range of some files that begins at a number; plain ones are decoded."""
        self.release()
        read = [(number, self._parts.of(number, file)) for number, file in enumerate(taken, first) if file.read]
        self.copied.take({number: file.path for number, file in read})
        arrived = {self.writer: taken[-1].arrived} if taken and not self.gives_rowtime else {}
        return Slice(
            {self.writer: first},
            {self.writer: first + len(taken)},
            arrived=arrived,
            rows=self._count([file for _, file in read]),
            counted=self.kind == "parquet",
            detail={
                "files": [[number, file.path, file.arrived] for number, file in read],
                "noted": [noted(file) for file in taken if file.code],
                "values": {str(number): dict(file.values) for number, file in read if file.values},
            },
        )

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:
        """Return the files between two numbers; raises ``Failure`` (R501) if one is missing or has another size."""
        first, last = start.get(self.writer, 0), end[self.writer]
        self._numbering.load(state, whole=True)
        moved = self._numbering.places()
        taken = [present(file, moved) for file in self._numbering.list.files[first:last]]
        changed = [file.path for file in taken if file.read and not is_unchanged(file)]
        if changed:
            what = f"the files cannot be read again: {changed[0]} is gone or has changed"
            raise Failure(Problem("R501", what, hint="Restore the files."))
        return self.slice_of(first, taken)

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the rows of some files, with their positions and their file's time as arrival."""
        return with_partitions(self._numbered(spark, part), part.detail["values"], self.columns)

    def scan(self, spark: SparkSession, part: Slice) -> Scan:
        """Return the same rows for one job: they need not be kept for another one."""
        self._keeps = False
        try:
            return Scan(self.read(spark, part))
        finally:
            self._keeps = True

    def _numbered(self, spark: SparkSession, part: Slice) -> DataFrame:
        self.copied.make()
        files = [(number, self.copied.place(path), arrived) for number, path, arrived in part.detail["files"]]
        rows = self._scan(spark, [path for _, path, _ in files])
        if len(files) == 1:
            number, _, arrived = files[0]
            return rows.selectExpr(*self._shown(f"{number}L", f"{arrived}L"))
        if len(files) <= FEW_FILES:
            entries = (f"{literal(origin_of(path))}, struct({n}L AS n, {at}L AS at)" for n, path, at in files)
            entry = f"element_at(map({', '.join(entries)}), __from)"
            return rows.selectExpr("*", f"{entry} AS __file").selectExpr(*self._shown("__file.n", "__file.at"))
        table = [(origin_of(path), number, arrived) for number, path, arrived in files]
        numbers = spark.createDataFrame(table, "__path string, __number bigint, __arrived bigint")
        rows = rows.join(F.broadcast(numbers), F.expr("__from = __path"))
        return rows.selectExpr(*self._shown("__number", "__arrived"))

    def rows(self, part: Slice, wanted: Mapping[str, str]) -> Iterator[pa.Table] | None:
        """Yield columns ``{name: column}`` of a range as Spark reads them; ``None`` if that is not certain."""
        if self.waits:
            self.copied.make()
        if self.decodes or (self.kind == "parquet" and self._options):
            return None
        given = {name: self.rowtime if column == ROWTIME else column for name, column in wanted.items()}
        timed = {self.rowtime} - {""}
        declared = {**dict.fromkeys(timed, "TIMESTAMP"), **dict(self.columns)}
        kinds = {column: _arrow(declared.get(column, "")) for column in {*timed, *given.values()} - set(OURS)}
        if any(kinds[name] != INSTANT for name in timed):
            return None
        constants = self.constants(part)
        if constants is None:
            return None
        files = (
            FileRows(
                number << ROWS_BITS,
                self.writer,
                self.copied.place(path),
                arrived,
                constants[str(number)],
                groups_of(part, number),
            )
            for number, path, arrived in part.detail["files"]
        )
        return columns(files, given, kinds)

    def constants(self, part: Slice) -> Mapping[str, Mapping[str, pa.Scalar]] | None:
        """Return the values of partition columns by file; ``None`` if only Spark reads them for certain."""
        values = part.detail["values"]
        named = {name.lower() for of_file in values.values() for name in of_file}
        kinds = {name: _arrow(kind) for name, kind in self.columns if name.lower() in named}
        return constants_of({str(number): values.get(str(number), {}) for number, *_ in part.detail["files"]}, kinds)

    def given(self, part: Slice, columns: Collection[str] | None = None) -> Given | None:
        """Return the rows of `read` with the types of their columns, read by Arrow; ``None`` if `rows` gives none."""
        names = [name for name, _ in self.columns if columns is None or name in columns]
        ours = [*([ROWTIME] if self.gives_rowtime else []), WRITER, POSITION, ARRIVAL]
        tables = self.rows(part, {name: name for name in (*names, *ours)})
        return None if tables is None else ([of for of in self.fields if of[0] in names or of in _HIDDEN], tables)

    def divided(self, part: Slice, many: int) -> Division | None:
        """Return parts of files; of text only if those who read them copy the files (`TickCopies`)."""
        reads = self.constants(part) is not None and all(is_read(kind) for _, kind in self.fields)
        if not reads or (self.decodes and not self.waits) or (self.kind == "parquet" and self._options):
            return None
        shares = shares_of(part, many, parquet=self.kind == "parquet")
        return Division(self.fields, [(self._sharing(share), share) for share in shares])

    def _sharing(self, part: Slice) -> FilesSource:
        source = copy(self)
        source.copied = self.copied.share(paths_of(part))
        return source

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        """The columns of `given`, with their types."""
        return [*((name, named(as_read(kind))) for name, kind in self.columns), *_HIDDEN]

    def count(self, part: Slice) -> int | None:
        """Return the number of rows, exactly if their text is decoded."""
        return part.rows if self.kind == "parquet" or self.decodes else self.copied.count

    def finished(self, at: Offsets) -> bool:
        """Return True once every present file has been taken."""
        return at.get(self.writer, 0) >= self._numbering.count and not self._numbering.new()

    def _shown(self, number: str, arrived: str) -> list[str]:
        names = [quoted(name) for name, _ in self.columns]
        given = "__given" if self.gives_rowtime else "CAST(NULL AS TIMESTAMP)"
        position = f"coalesce(shiftleft({number}, {ROWS_BITS}) + __row, {_NO_PLACE}) AS {POSITION}"
        malformed = [MALFORMED] if self.decodes else []
        arrival = f"timestamp_micros({arrived}) AS {ARRIVAL}"
        return [*names, f"{given} AS {ROWTIME}", f"'{self.writer}' AS {WRITER}", position, arrival, *malformed]

    def _scan(self, spark: SparkSession, paths: Sequence[str]) -> DataFrame:
        origin = f"{_PLACE_OF_ROW if all(map(_PLAIN.fullmatch, paths)) else _DECODED_PLACE} AS __from"
        columnar = [path for path in paths if self.kind == "parquet" or path in self.copied.places]
        parts = [self._columnar(spark, columnar, origin)] if columnar else []
        text = [path for path in paths if path not in columnar]
        by_columns = by_header(text, self._options) if self.kind == "csv" else {(): text}
        parts += [self._parse(spark, names, files, origin) for names, files in by_columns.items() if files]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)

    def _columnar(self, spark: SparkSession, paths: Sequence[str], origin: str) -> DataFrame:
        """Read Parquet files, or those of decoded text: Arrow writes the proleptic calendar."""
        options = self._options if self.kind == "parquet" else {"datetimeRebaseMode": "CORRECTED"}
        schema = ", ".join([*_typed(self._wanted), f"{_ROW_INDEX} BIGINT"])
        rows = spark.read.options(**options).schema(schema).parquet(*map(as_pattern, paths))
        rows = rows.selectExpr(*self._selected(), f"{_ROW_INDEX} AS __row", origin)
        return unskipped(rows)

    def _parse(self, spark: SparkSession, names: Sequence[str], paths: Sequence[str], origin: str) -> DataFrame:
        """Read text files with columns of these names, in this order; without names, the declared ones."""
        wanted, numbers = self._wanted, self._numbers()
        kinds = {name.lower(): numbers.kind(name, kind) for name, kind in wanted.items()}
        present = {name: kinds.get(name.lower(), "STRING") for name in names or wanted}
        schema = ", ".join([*_typed(present), f"{MALFORMED} STRING"])
        reader = spark.read.options(**self._options, mode="PERMISSIVE", columnNameOfCorruptRecord=MALFORMED)
        rows = numbers.converted(reader.schema(schema).format(self.kind).load(list(map(as_pattern, paths))))
        lacking = set(kinds) - {name.lower() for name in present}
        nulls = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in wanted.items() if name.lower() in lacking]
        # A task reads one whole file (see `runtime.session`), so the number of a row in its task is its number in the
        # file.
        row = "monotonically_increasing_id() & 8589934591 AS __row"
        # Spark parses only the columns that a job needs, and a record is malformed only if one of those is. When
        # cached, every record is parsed once, with all of its columns.
        whole = lacking == set(kinds)  # no column is read, which Spark refuses
        if whole:
            rows = self._parsed_once(rows.selectExpr("struct(*) AS __record", MALFORMED, row, origin))
            row, origin = "__row", "__from"
        if nulls:
            rows = rows.selectExpr("*", *nulls)
        rows = rows.selectExpr(*self._selected(), MALFORMED, row, origin)
        return rows if whole or not (self._keeps or self._fails_fast) else self._parsed_once(rows)

    def _parsed_once(self, rows: DataFrame) -> DataFrame:
        self._parsed.append(rows.persist())
        if self._fails_fast:
            bad = rows.where(F.col(MALFORMED).isNotNull())
            for text, row, file in bad.select(MALFORMED, "__row", "__from").head(1):
                what = f"record {row + 1} of {file} does not decode: {text[:_MOST_SHOWN]}"
                raise Failure(Problem("R525", what, hint=_CORRECT))
        return rows

    def _selected(self) -> list[str]:
        """Return the stream's columns, and the rowtime from the file."""
        given = [f"{quoted(self.rowtime)} AS __given"] if self.gives_rowtime else []
        present = (name if name in self._wanted else None for name, _ in self.columns)
        names = (
            quoted(name) if is_present else f"CAST(NULL AS {kind}) AS {quoted(name)}"
            for is_present, (name, kind) in zip(present, self.columns, strict=True)
        )
        return [*names, *given]

    def release(self) -> None:
        """Drop the parsed and decoded records of the tick."""
        for rows in self._parsed:
            rows.unpersist()
        self._parsed.clear()
        self.copied.clear()
        self._parts.clear()

    def _count(self, files: Sequence[NumberedFile]) -> int | None:
        """Return an upper limit for the number of rows: a row of text has a line, unless it is compressed."""
        if self.kind == "parquet":
            return sum(rows_of([file.path for file in files]))
        copied = [self.copied.rows(file.path) for file in files]
        unread = [file for file, n in zip(files, copied, strict=True) if n is None]
        if any(file.path.lower().endswith(COMPRESSED) for file in unread):
            return None
        return sum(map(self._lines, unread)) + sum(n or 0 for n in copied)

    def _lines(self, file: NumberedFile) -> int:
        """Return an upper limit for the lines of a file: they have at least two bytes."""
        return lines_in(file.path) if self.copied.waiting else file.size // 2 + 1


def _place_at(path: str) -> tuple[Path, str]:
    """Return the folder of a source, and a glob below it, which may be empty.

    Raises ``Refused``: R586 for one on an object store, R211 for another URL.
    """
    if on_store(path):
        what = f"the path of the source is {path}: a stream cannot tell what happens to files there"
        hint = "Append them to a Delta or Iceberg table there and read that; or use a folder that all machines mount."
        raise refuse("R586", what, hint)
    return below_glob(local(path, "the path of the source"))


def _typed(columns: Mapping[str, str]) -> list[str]:
    return [f"{quoted(name)} {kind}" for name, kind in columns.items()]


def _arrow(kind: str) -> pa.DataType | None:
    """Return the type in Arrow, if it is one that streams can store."""
    try:
        return arrow_type(kind)
    except Refused:
        return None
