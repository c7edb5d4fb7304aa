"""Stored rows: the output of a sink and the rows refused by a gate, in parts that are read one by one."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.client.log_items import Rows
from rowtime.client.stream_log import entries_of
from rowtime.core.errors import refuse
from rowtime.plan.formats.lake import LAKES
from rowtime.state.memory import opened, read_table

if TYPE_CHECKING:
    from rowtime.client.home import Home
    from rowtime.core.stores import Place
    from rowtime.operators.sinks.sink import Sink
    from rowtime.state.checkpoint import Checkpoint
    from rowtime.state.journal import Entry

LINE: Final = "line"


@dataclass(frozen=True)
class Part:
    """A group of rows: ``read`` returns them, in order; ``count`` is their number, if known before."""

    read: Callable[[], pa.Table]
    count: int | None = None


@dataclass(frozen=True)
class Kept:
    """All stored rows of one output or gate: their number, and their parts, oldest first.

    ``numbered``: the last row of the last part has the number ``total - 1``, by which it can be traced.
    """

    total: int
    parts: Sequence[Part]
    numbered: bool = False


def refused_rows(checkpoint: Checkpoint, gate: str, entry: Entry, columns: Sequence[str]) -> Kept:
    """Return the rows that a gate has refused; ``columns``: those to show first."""
    counts = entry["totals"].get(gate, {})
    total = sum(n for why, n in counts.items() if why not in ("in", "accepted"))
    files = checkpoint.rejected(gate, entry["tick"])
    return Kept(total, [Part(_parquet(path, columns), _rows_in(path)) for path in files])


def written_rows(node: Sink, home: Home, checkpoint: Checkpoint, entry: Entry) -> Kept:
    """Return the rows of an output. Raises ``Refused`` (R706) if rowtime cannot read it back, or ``Failure`` (R406)."""
    checkpoint.check_identity(entry)
    total = _published(node, checkpoint, entry)
    options = dict(node.options)
    if node.format in ("parquet", "csv", "json"):
        return _of_directory(node, checkpoint, entry, total)
    if node.format == "log":
        return Kept(total, [*_of_log(node, home, options["stream"])], node.ordered)
    if node.format in LAKES:
        from rowtime.audit.read_back import of_lake  # noqa: PLC0415 - it loads Spark's classes, though no Java

        return Kept(total, [Part(lambda: of_lake(node, entry["tick"], checkpoint.identity))])
    raise refuse("R706", f"the console cannot read rows back from {node.format}", "Use the tools of that system.")


def _published(node: Sink, checkpoint: Checkpoint, entry: Entry) -> int:
    """The number of rows that others can see: those of a last tick that was not delivered are not included."""
    total = int(entry["control"].get(node.name, {}).get("sequence", 0))
    last = entry["outputs"].get(node.name, {}).get("count", 0)
    return total - int(last) if checkpoint.published < entry["tick"] else total


def _of_directory(node: Sink, checkpoint: Checkpoint, entry: Entry, total: int) -> Kept:
    from rowtime.audit.read_back import rows_of  # noqa: PLC0415 - it loads Spark's classes, though no Java
    from rowtime.runtime.claims import pump_of  # noqa: PLC0415 - the same
    from rowtime.runtime.file_form import FileForm  # noqa: PLC0415 - the same
    from rowtime.runtime.sinks.directory import files_of  # noqa: PLC0415 - the same

    folder, split = _folder(node, entry), FileForm.of(node, node.columns).split
    files = files_of(folder, pump_of(node.name), checkpoint.identity) if folder.is_dir() else []

    def read(path: Place) -> pa.Table:
        return _columns(node, rows_of(node, [path]))

    mine = [path for path in files if _tick(path) <= entry["tick"]]
    parts = [Part(partial(read, path), _rows_in(path) if node.format == "parquet" else None) for path in mine]
    return Kept(total, parts, node.ordered and not split)


def _tick(path: Place) -> int:
    """Return the tick in the name of a file."""
    parts = path.name.split("-")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else -1


def _folder(node: Sink, entry: Entry) -> Path:
    """Return where an output's files are: by the script, or by the driver, which may have run elsewhere."""
    declared = Path(dict(node.options)["path"]).absolute()
    staged = entry["outputs"].get(node.name, {}).get("folder")
    return declared if declared.is_dir() or not staged else Path(staged).parents[2]


def _of_log(node: Sink, home: Home, stream: str) -> Iterator[Part]:
    from rowtime.runtime.claims import pump_of  # noqa: PLC0415 - it loads Spark's classes, though no Java
    from rowtime.runtime.sinks.stream_log import writer_of  # noqa: PLC0415 - the same

    log = home.log_path(stream)
    for entry in entries_of(log, writer_of(pump_of(node.name))):
        if isinstance(entry, Rows):
            yield Part(_parquet(log / entry.path, ()), entry.count)


def _parquet(path: Place, first: Sequence[str]) -> Callable[[], pa.Table]:
    def read() -> pa.Table:
        table = read_table(path)
        shown = [name for name in table.column_names if not name.startswith("__")]
        ahead = [name for name in first if name in shown]
        return table.select([*ahead, *(name for name in shown if name not in ahead)])

    return read


def _rows_in(path: Place) -> int | None:
    try:
        return int(pq.read_metadata(opened(path)).num_rows)
    except (OSError, pa.ArrowInvalid):
        return None


def _columns(node: Sink, table: pa.Table) -> pa.Table:
    """Return lines of a text file as columns of texts."""
    if table.column_names[:1] != [LINE] or node.format == "parquet":
        return table
    lines = table[LINE].to_pylist()
    if node.format == "json":
        objects = [_object(line) for line in lines]
        names = dict.fromkeys(name for item in objects for name in item)
        return pa.table({name: pa.array([_text(item.get(name)) for item in objects], pa.string()) for name in names})
    separator = {name.lower(): value for name, value in node.options}.get("sep", ",")
    cells = [*csv.reader(lines, delimiter=separator[:1] or ",")]
    wide = max((len(row) for row in cells), default=0)
    names = dict.fromkeys([*node.columns, *(f"column {n + 1}" for n in range(len(node.columns), wide))])
    columns = {name: [row[n] if n < len(row) else None for row in cells] for n, name in enumerate(names)}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def _object(line: str) -> Mapping[str, Any]:
    content = json.loads(line)
    return content if isinstance(content, dict) else {LINE: line}


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
