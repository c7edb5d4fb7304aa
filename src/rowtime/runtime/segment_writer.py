"""Writes rows into several files, one per route: a tick's aggregation has rows to emit and rows to keep.

The rows of a static table are Spark's: each task writes its rows to files, and reports them with their counts.
"""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from rowtime.client.parquet_statistics import trusted
from rowtime.core.checksums import checksum
from rowtime.core.columns import LINE, ROUTE
from rowtime.core.errors import Failure, Problem
from rowtime.core.partition_folders import folder_of
from rowtime.core.shared_paths import temporary
from rowtime.core.stores import Place
from rowtime.frames.frame import Frame
from rowtime.frames.queries import FEW_ROWS, give_back
from rowtime.operators.contract import quoted
from rowtime.operators.contract.state import Route, Segment
from rowtime.runtime.file_form import FileForm
from rowtime.runtime.loose_types import loosened
from rowtime.runtime.route_rows import BLOCK, SMALL, Chosen, Values, alike, chosen_by, parts_of, rows_of
from rowtime.state.files import arrived, begin, begin_to_sync, make_folder, sync_names

PARQUET, STATE = FileForm(), FileForm(dictionary=False)
HELD = 512 << 20  # bytes of intermediate results that stay in memory, where they are anyway
_PLAIN = re.compile(r"\w+")
_REPORT = "route string, path string, rows bigint, lowest bigint, highest bigint, sum bigint, size bigint"


def write_routes(  # noqa: PLR0913 - what, where, and in which form
    rows: Frame | pa.Table | DataFrame,
    folder: Place,
    stem: str,
    routes: Mapping[str, Route],
    form: FileForm = PARQUET,
    held: Collection[str] = (),
) -> tuple[dict[str, list[Segment]], dict[str, pa.Table]]:
    """Write ``rows`` (with a column ``__route``) below ``folder``; one Spark job, if they are those of a static table.

    ``held``: routes whose rows are not needed after the tick. They stay in memory, unless they are very large: their
    segments have no file, and so no checksum. ``form``: of the files; text files have their lines in column ``__line``.
    Names of files sort in the order of the rows, within each folder.

    Files and objects that this process writes are durable once `files.arrived` returns: then an entry that names them
    may be committed. Returns the segments of each route, with paths below ``folder``; and, if few rows were written
    here, the rows themselves.
    """
    target = _Target(folder, stem, form)
    rows = _narrowed(rows, routes)
    if isinstance(rows, Frame):
        rows = rows.toArrow()
    if isinstance(rows, pa.Table):
        return _write_here(rows, target, routes, held)
    written = _write_there(loosened(rows), target, routes)
    paths = [folder / segment.path for segments in written.values() for segment in segments]
    for place in {path.parent for path in paths} if form.folders else {folder} if paths else ():
        sync_names(place)
    return written, {}


def _narrowed(rows: Frame | pa.Table | DataFrame, routes: Mapping[str, Route]) -> Frame | pa.Table | DataFrame:
    """Return the rows without the columns that no route has, which then need not be computed."""
    names = rows.column_names if isinstance(rows, pa.Table) else rows.columns
    read = {ROUTE, *(name for route in routes.values() for name in (*route.columns.values(), route.time))}
    few = isinstance(rows, Frame) and rows.sized <= FEW_ROWS  # another SELECT takes longer
    if few or read.issuperset(names) or len({name.lower() for name in names}) < len(names):
        return rows
    chosen = [name for name in names if name in read]
    return rows.select(chosen) if isinstance(rows, pa.Table) else rows.select(*map(quoted, chosen))


def write_table(table: pa.Table, folder: Place, stem: str, name: str, time: str | None) -> Segment:
    """Write rows to one file, durable as in `write_routes`; ``time``: the column of the range."""
    file = _File(_Target(folder, stem, STATE), name, 0, ())
    file.whole = table
    file.write(table, table[time] if time else pa.array([0]))
    return file.close()


def _write_there(rows: DataFrame, target: _Target, routes: Mapping[str, Route]) -> dict[str, list[Segment]]:
    """Let each task write files under names of its own; of several tries, the report names the files of one."""
    # Rows are selected by these names, in which a dot would separate fields.
    names = {name: name if _PLAIN.fullmatch(name) else f"__column{n}" for n, name in enumerate(rows.columns)}
    named = {
        route: replace(to, columns={name: names[of] for name, of in to.columns.items()}) for route, to in routes.items()
    }
    report = rows.toDF(*names.values()).mapInArrow(_Task(target, named), _REPORT).toArrow()
    written: dict[str, list[Segment]] = {name: [] for name in routes}
    folder = target.folder
    for line in report.to_pylist():
        if isinstance(folder, Path) and not (folder / line["path"]).exists():
            what = f"a task wrote {line['path']} below {target.folder}, but the driver does not find it there"
            hint = "Put the checkpoint and the folders of sinks on a file system that all workers share."
            raise Failure(Problem("R508", what, hint=hint))
        times, checks = (line["lowest"], line["highest"]), {"sum": line["sum"], "size": line["size"]}
        written[line["route"]].append(Segment(line["path"], line["rows"], *times, **checks))
    return written


@dataclass(frozen=True)
class _Target:
    """Where files go and of which kind they are."""

    folder: Place
    stem: str
    form: FileForm

    def path(self, route: str, part: int, piece: int, values: Values) -> str:
        name = f"{route}-{piece:05d}" if self.form.most or self.form.folders else route
        folder = f"{folder_of(self.form.split, values)}/" if self.form.folders else ""
        return f"{folder}{self.stem}-{part:05d}-{name}-{uuid.uuid4().hex[:8]}{self.form.ending}"


def _write_here(
    table: pa.Table, target: _Target, routes: Mapping[str, Route], held: Collection[str]
) -> tuple[dict[str, list[Segment]], dict[str, pa.Table]]:
    give_back(table.num_rows)
    written: dict[str, list[Segment]] = {name: [] for name in routes}
    tables: dict[str, pa.Table] = {}
    quick = held if table.nbytes <= HELD else ()
    parts = [
        (name, number, values, Chosen(rows.whole()) if name in quick else rows)
        for name, number, values, rows in parts_of(table, routes, target.form)
    ]
    kept = {n for n, (name, _, _, _) in enumerate(parts) if name in quick}

    def segment_of(n: int) -> Segment:
        name, number, values, rows = parts[n]
        if n in kept:
            edges = pc.min_max(rows.table[routes[name].time])
            path = target.path(name, number, 0, values)
            return Segment(path, rows.count, edges["min"].as_py(), edges["max"].as_py())
        return _write_part(_File(target, name, number, values), routes[name], rows)

    for (n, (name, _, _, rows)), segment in zip(
        enumerate(parts), _each(segment_of, len(parts), len(kept)), strict=True
    ):
        written[name].append(segment)
        if n in kept or rows.count <= SMALL:
            tables[segment.path] = _columns(rows.whole(), routes[name], target.form.required)
    return written, tables


def _each(segment_of: Callable[[int], Segment], count: int, quick: int) -> Iterable[Segment]:
    """Return what is made for each number below ``count``, concurrently if several take time."""
    at_once = min(count - quick, os.cpu_count() or 1)
    if at_once <= 1:
        return map(segment_of, range(count))
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(segment_of, range(count)))


def _write_part(file: _File, route: Route, rows: Chosen) -> Segment:
    required = file.target.form.required
    file.whole = _columns(rows.table, route, required)
    for block in rows.blocks():
        file.write(_columns(block, route, required), block[route.time])
    return file.close()


def _columns(rows: Any, route: Route, required: Collection[str]) -> Any:
    """Return the columns of a file. A column that is not ``required`` is nullable, even if it has no NULL here."""
    chosen = rows.select(list(route.columns.values()))
    fields = zip(route.columns, chosen.schema, strict=True)
    schema = pa.schema([field.with_name(name).with_nullable(nullable=name not in required) for name, field in fields])
    return type(chosen).from_arrays(chosen.columns, schema=schema)


def repeated(rows: pa.RecordBatch | pa.Table) -> bool | list[str]:
    """Return the columns of which Parquet lists the different values, or True for all.

    A dictionary of values of which most are different, as times are, makes a file larger and takes four times as long.
    Each row group has its own, so the first one tells.
    """
    if rows.num_rows <= BLOCK or any(pa.types.is_nested(kind) for kind in rows.schema.types):
        return True
    first = rows.slice(0, BLOCK)
    return [name for name in rows.schema.names if 2 * len(first.column(name).unique()) <= BLOCK]


class _Task:
    """The work of one Spark task: write its rows by route, and report the files."""

    def __init__(self, target: _Target, routes: dict[str, Route]) -> None:
        self.target, self.routes = target, routes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - runs on an executor

        context = TaskContext.get()
        part_number = context.partitionId() if context else 0
        files: dict[_Key, _File] = {}
        self._pieces: Counter[_Key] = Counter()
        for batch in batches:
            for name, route in self.routes.items():
                chosen = chosen_by(batch.column(ROUTE), route)
                times = batch.column(route.time).filter(chosen)
                rows = _columns(batch, route, self.target.form.required).filter(chosen)
                last: Values = ()
                for of, at in alike(rows, self.target.form.split) if len(times) else ():
                    mine = (rows, times) if at is None else (rows.take(at), times.take(at))
                    yield from self._add(files, (name, of), part_number, *mine)
                    last = of if at is None or at[-1].as_py() == len(times) - 1 else last
                # Rows of one folder follow each other, so that few files are open.
                done = [key for key in files if self.target.form.folders and len(times) and key != (name, last)]
                yield from self._reports((key, files.pop(key)) for key in done)
        yield from self._reports(files.items())

    def _reports(self, files: Iterable[tuple[_Key, _File]]) -> Iterator[pa.RecordBatch]:
        """Close files, and write their objects at once; they exist when they are reported."""
        closed = [(name, file.close()) for (name, _), file in files]
        arrived(self.target.folder)
        yield from (_report(*pair) for pair in closed)

    def _add(
        self, files: dict[_Key, _File], key: _Key, part: int, rows: pa.RecordBatch, times: pa.Array
    ) -> Iterator[pa.RecordBatch]:
        """Write rows to the current file; a file that is full is reported, and another one follows."""
        most, done = self.target.form.most, 0
        at_once = rows_of(rows, self.target.form.largest // 4)  # so that a file is not much larger than allowed
        while done < rows.num_rows:
            if key in files and files[key].full:
                yield from self._reports([(key, files.pop(key))])
            if key not in files:
                files[key] = _File(self.target, key[0], part, key[1], self._pieces[key])
                self._pieces[key] += 1
            room = min(most - files[key].rows if most else rows.num_rows, at_once)
            files[key].write(rows.slice(done, room), times.slice(done, room))
            done += room


def _report(route: str, segment: Segment) -> pa.RecordBatch:
    numbers = (segment.rows, segment.lowest, segment.highest, segment.sum, segment.size)
    arrays = [pa.array([route]), pa.array([segment.path]), *(pa.array([n], pa.int64()) for n in numbers)]
    return pa.record_batch(arrays, names=["route", "path", "rows", "lowest", "highest", "sum", "size"])


_Key = tuple[str, Values]  # a route, and these values


class _File:
    """One open file of one route."""

    def __init__(self, target: _Target, route: str, part: int, values: Values, piece: int = 0) -> None:
        self.target, self.path = target, target.path(route, part, piece, values)
        self.rows, self.lowest, self.highest = 0, 2**62, -(2**62)
        self.whole: pa.Table | None = None  # rows among which all of the file are, if they are known
        self._writer: pq.ParquetWriter | None = None
        self._lines: IO[bytes] | None = None
        self._place = target.folder / self.path
        self._draft = self._place if isinstance(self._place, Path) else temporary()  # a store takes it as a whole

    def write(self, part: pa.RecordBatch | pa.Table, times: pa.Array | pa.ChunkedArray) -> None:
        if self.target.form.kind == "parquet":
            held = part.drop_columns([*self.target.form.split]) if self.target.form.folders else part
            self._parquet(held).write(held, row_group_size=BLOCK)
        else:
            self._text().write(("\n".join(part[LINE].to_pylist()) + "\n").encode())
        edges = pc.min_max(times)
        self.rows += part.num_rows
        self.lowest = min(self.lowest, edges["min"].as_py())
        self.highest = max(self.highest, edges["max"].as_py())

    @property
    def full(self) -> bool:
        """Return True if it has as much as a file may have."""
        form = self.target.form
        if form.most and self.rows == form.most:
            return True
        return form.largest > 0 and self._draft.stat().st_size >= form.largest

    def close(self) -> Segment:
        if self._writer is not None:
            self._writer.close()
        if self._lines is not None:
            self._lines.close()
        known, size = checksum(self._draft), self._draft.stat().st_size
        if isinstance(self._place, Path):
            begin_to_sync(self._place)
        else:
            begin(self._place, self._store)
        return Segment(self.path, self.rows, self.lowest, self.highest, sum=known, size=size)

    def _store(self) -> None:
        assert not isinstance(self._place, Path)
        try:
            self._place.upload(self._draft)
        finally:
            self._draft.unlink()

    def _parquet(self, part: pa.RecordBatch | pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            codec = {"compression": self.target.form.codec} if self.target.form.codec else {}
            is_trusted = trusted(part.schema, self.whole)
            form: dict[str, Any] = {
                "write_statistics": is_trusted,
                "use_dictionary": self.target.form.dictionary and repeated(part),
                **codec,
            }
            self._writer = pq.ParquetWriter(self._prepared(), part.schema, **form)
        return self._writer

    def _text(self) -> IO[bytes]:
        if self._lines is None:
            self._lines = self.target.form.opened(self._prepared())
        return self._lines

    def _prepared(self) -> Path:
        make_folder(self._draft.parent)
        return self._draft
