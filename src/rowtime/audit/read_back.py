"""Reads back what sinks have written: the rows up to a tick, in the order of their numbers, or a table's content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.client.home import Home
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import entries_of
from rowtime.core.columns import ROW_NUMBER, ROWTIME
from rowtime.core.errors import Failure, Problem
from rowtime.core.partition_folders import inside, values_of
from rowtime.core.stores import Place
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.plan.bind.sink_options import CHANGE, LakeOptions, key_of_rows
from rowtime.plan.formats.lake import LAKES
from rowtime.runtime.claims import pump_of
from rowtime.runtime.file_form import FileForm, lines_of
from rowtime.runtime.sinks.directory import STAGING, files_of
from rowtime.runtime.sinks.lake_rows import last_of_each
from rowtime.runtime.sinks.lakes import lake_sink, lake_table
from rowtime.runtime.sinks.ownership import read, tag_of
from rowtime.runtime.sinks.staging import TEXT_FORMATS
from rowtime.runtime.sinks.stream_log import writer_of
from rowtime.state.checkpoint import Checkpoint, folder_of
from rowtime.state.memory import read_table

LINE = "line"  # the one column of a text file
NONE: Mapping[str, Sequence[str]] = {}


def read_back(  # noqa: PLR0913 - which rows of which sink, and where they are
    node: SinkNode,
    home: Home,
    tick: int,
    numbers: tuple[int, int],
    checkpoint: Checkpoint,
    *,
    skipped: Mapping[str, Sequence[str]],
) -> pa.Table | None:
    """Return the rows with ``numbers`` that a checkpoint has written up to a tick; ``None`` if that is impossible.

    Text files are returned as their lines, with those of ``skipped`` files in their places. Raises ``Failure`` (R501)
    if a file cannot be read.
    """
    options = dict(node.options)
    if node.format in ("parquet", *TEXT_FORMATS):
        files = files_of(Path(options["path"]).absolute(), pump_of(node.name), checkpoint.identity)
        return rows_of(node, _up_to(files, tick, checkpoint.plan.anew if checkpoint.plan else 0), skipped)
    if node.format in LAKES:
        anew = checkpoint.plan.anew if checkpoint.plan and numbers[0] else 0
        return of_lake(node, tick, checkpoint.identity, anew)
    if node.format == "log":
        return _of_log(home.log_path(options["stream"]), writer_of(pump_of(node.name)), node, numbers)
    return None


def rows_of(node: SinkNode, files: Sequence[Place], skipped: Mapping[str, Sequence[str]] = NONE) -> pa.Table:
    """Return the rows of files in a sink's directory, or before they are moved there."""
    form = FileForm.of(node, node.columns)
    if form.folders:
        return _of_folders(node, form, files, skipped)
    if node.format in TEXT_FORMATS:
        lines_of = [(file.name.removeprefix("part-"), _lines(file, form)) for file in files]
        if skipped:
            lines_of = sorted([*lines_of, *((name, [*lines]) for name, lines in skipped.items())], key=itemgetter(0))
        return _table([line for _, lines in lines_of for line in lines])
    return tables(files)


def _of_folders(
    node: SinkNode, form: FileForm, files: Sequence[Place], skipped: Mapping[str, Sequence[str]]
) -> pa.Table:
    """Return the rows folder by folder, with the values in the names of the folders, as texts."""
    tables = [(name, _table(lines)) for name, lines in skipped.items()]
    for file in files:
        rows = _read(file) if form.kind == "parquet" else _table(_lines(file, form))
        tables.append((inside(file, len(form.split)), rows))
    parts = []
    for path, rows in sorted(tables, key=lambda one: one[0].rpartition("/")[::2]):
        values = zip(form.split, values_of(path), strict=True)
        given = {name: pa.array([value] * rows.num_rows, pa.string()) for name, value in values}
        table = pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), **given})
        parts.append(table.select(node.columns) if form.kind == "parquet" else table)
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _lines(file: Place, form: FileForm) -> list[str]:
    return lines_of(file)[int(form.header is not None) :]


def _table(lines: Sequence[str]) -> pa.Table:
    return pa.table({LINE: pa.array(lines, pa.string())})


def tables(files: Iterable[Place]) -> pa.Table:
    """Return Parquet files as one table, in their order."""
    parts = [_read(file) for file in files]
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})


def _read(file: Place) -> pa.Table:
    try:
        return read_table(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise Failure(Problem("R501", f"{file} cannot be read: {error}", hint="Restore it from a copy.")) from error


def _up_to(files: Sequence[Place], tick: int, since: int) -> list[Place]:
    named = [(path, path.name.split("-")) for path in files]
    return [path for path, parts in named if len(parts) > 2 and parts[1].isdigit() and since <= int(parts[1]) <= tick]  # noqa: PLR2004


def _of_log(log: Place, writer: str, node: SinkNode, numbers: tuple[int, int]) -> pa.Table:
    table = tables(log / entry.path for entry in entries_of(log, writer) if isinstance(entry, Rows))
    table = table.slice(numbers[0], numbers[1] - numbers[0])
    if not table.num_columns:
        return table
    declared = [name for name in table.column_names if not name.startswith("__")]
    table = table.select([*([ROWTIME] if node.rowtime else []), *declared])
    return table.rename_columns([*([node.rowtime] if node.rowtime else []), *declared])


# -- lake tables ----------------------------------------------------------------------


def of_lake(node: SinkNode, tick: int, identity: str, since: int = 0) -> pa.Table | None:
    """Return the rows that a checkpoint's pump has written between two ticks, or those of a table with a key.

    ``None`` where others have changed the table, so that nobody can tell whose its rows are.
    """
    ending = f"-{tag_of(identity, pump_of(node.name))}.parquet"

    def mine(name: str) -> bool:
        return name.startswith("part-") and name.endswith(ending) and since <= int(name.split("-")[1]) <= tick

    options = dict(node.options)
    table = lake_table(node.format, options, pump_of(node.name))
    rows = table.rows(mine, merged=bool(LakeOptions.of(options).key), every=not since)
    names = _columns_written(node)
    return rows.select(names) if rows is not None and rows.num_columns else rows


def beside_others(node: SinkNode, checkpoint: Checkpoint, base: int, table: pa.Table, rows: pa.Table) -> pa.Table:
    """Return a keyed table's rows for the keys of certain rows; all of it, unless its pump has taken over.

    ``base``: how many rows an older script of the checkpoint has written, which may be of other keys.
    """
    key = key_of_rows(node) if node.format in LAKES else ()
    if not (key and table.num_columns and rows.num_rows):
        return table
    record = read(lake_sink(node).path / STAGING / folder_of(pump_of(node.name)))
    if not (base or (record is not None and record.before and record.identity == checkpoint.identity)):
        return table
    keys = rows.select(key).cast(pa.schema([table.schema.field(name) for name in key])).group_by(list(key))
    numbers = pa.table({**dict(zip(key, table.select(key).columns, strict=True)), ROW_NUMBER: np.arange(len(table))})
    indices = numbers.join(keys.aggregate([]), list(key), join_type="left semi")[ROW_NUMBER]
    return table.take(indices.sort())


def left_in(node: SinkNode, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return what the rows of a sink leave in its table: all rows, or with a key the last one of each.

    ``schema``: that of the table, in which a decimal may have fewer digits after the point.
    """
    if node.format not in LAKES or not rows.num_rows:
        return rows
    options = LakeOptions.of(dict(node.options))
    for at, field in enumerate(rows.schema):
        written = schema.field(field.name).type if field.name in schema.names else field.type
        if pa.types.is_decimal(written) and pa.types.is_decimal(field.type) and written.scale < field.type.scale:
            rounded = pc.round(rows.column(at), ndigits=written.scale, round_mode="half_towards_infinity")
            rows = rows.set_column(at, field, rounded)
    if not options.key:
        return rows
    last = last_of_each(rows, options.key)
    if options.mode == "changes":
        last = last.filter(pc.not_equal(last[CHANGE], "RETRACT"))
    return last.select(_columns_written(node))


def _columns_written(node: SinkNode) -> list[str]:
    return LakeOptions.of(dict(node.options)).written(node.columns)
