"""A Delta table through its log, without Spark's connector: the package deltalake, which only this module imports.

Spark's tasks have written the files; a log entry adds them by name, with the application transactions that are the mark
of a pump (`lake`): ``rowtime/<checkpoint>/<pump>`` has the last tick, the same with ``/rows`` after it the number of
rows, with ``/link`` what identifies them. All survive checkpoints of the log, and RESTORE.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.shared_paths import sync
from rowtime.core.stores import ObjectPlace, Place, below, content_of
from rowtime.core.time import to_text
from rowtime.frames.words import quoted
from rowtime.runtime.delta_places import delta_place
from rowtime.runtime.sinks.delta_compaction import LOG, compacted, spare
from rowtime.runtime.sinks.delta_files import partition_of, size_of, statistics, whole
from rowtime.runtime.sinks.failures import FOLDER_HINT
from rowtime.runtime.sinks.lake import Conflict, LakeSink, Mark, Ready, TableState, published
from rowtime.runtime.sinks.lake_rows import compared, last_of_each
from rowtime.runtime.store_access import asking, deltalake_settings
from rowtime.state.memory import read_table

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from rowtime.operators.sinks.sink import Sink as SinkNode

_WRITES: Final = frozenset(
    (
        *("appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed", "timestampNtz"),
        *("deletionVectors", "v2Checkpoint", "domainMetadata", "vacuumProtocolCheck", "columnMapping"),
        *("inCommitTimestamp", "clustering", "typeWidening", "variantType", "identityColumns"),
    )
)
"""Features of a table that rowtime knows; some of them only if the table does not use them (`_used`)."""
PUMP: Final = "rowtime.pump"  # in the metadata of a version
_HIGHEST: Final = 7  # the writer version with a list of features


def delta_sink(node: SinkNode) -> LakeSink:
    """Return the sink of a pump into the Delta table at ``path``."""
    path = delta_place(dict(node.options)["path"])
    return LakeSink(node, DeltaLog(path, node.name.removesuffix(".sink")), path, f"the Delta table {path}")


class DeltaLog:
    """The Delta table of a folder."""

    promised, alone = False, True

    def __init__(self, path: Place, pump: str) -> None:
        self._path, self._pump = path, pump
        self._table: Any = None

    def look(self, app: str) -> TableState | None:
        """Return the present table, if there is one; ``app``: whose mark."""
        table = self._opened()
        if table is None:
            return None
        from pyspark.sql.types import StructType  # noqa: PLC0415 - not for those who only plan

        tick, rows, link = (table.transaction_version(name) for name in (app, f"{app}/rows", f"{app}/link"))
        metadata = table.metadata()
        columns = StructType.fromJson(json.loads(table.schema().to_json()))
        mark = Mark() if tick is None else Mark(tick, rows or 0, "" if link is None else f"{link:016x}")
        return TableState(str(metadata.id), columns, tuple(metadata.partition_columns), mark, _odd(table, columns))

    def create(self, columns: StructType, partitions: Sequence[str]) -> None:
        """Create the table. Raises `Conflict` if somebody else just has."""
        from deltalake import DeltaTable, Schema  # noqa: PLC0415 - an extra
        from deltalake.exceptions import DeltaError  # noqa: PLC0415

        try:
            how = deltalake_settings(self._path)
            schema = Schema.from_json(json.dumps(columns.jsonValue()))
            with asking(self._path):
                DeltaTable.create(str(self._path), schema, partition_by=list(partitions), storage_options=how)
        except DeltaError as error:
            if self._opened() is None:
                raise self._failure(error) from error
            raise Conflict from error

    def commit(self, ready: Ready) -> None:
        """Make one commit: of the files as they are, or of their changes by key. Raises `Conflict`."""
        from deltalake import CommitProperties, Transaction  # noqa: PLC0415 - an extra
        from deltalake.exceptions import CommitFailedError, DeltaError  # noqa: PLC0415

        mark = [Transaction(ready.app, ready.mark.tick), Transaction(f"{ready.app}/rows", ready.mark.rows)]
        mark += [Transaction(f"{ready.app}/link", int(ready.mark.link, 16))] if ready.mark.link else []
        metadata = {PUMP: ready.app, "rowtime.tick": str(ready.mark.tick), "rowtime.bound": to_text(ready.bound)}
        version = self._table.version()
        properties = CommitProperties(custom_metadata=metadata, app_transactions=mark)
        try:
            with asking(self._path):
                self._complete()
                if ready.key:
                    self._merge(ready, properties)
                else:
                    self._add(ready.files, properties)
                self._keep(version)
        except CommitFailedError as error:
            raise Conflict from error
        except DeltaError as error:
            raise self._failure(error) from error

    def compact(self) -> int:
        """Combine small files into large ones; return their number. Raises `Conflict`."""
        from deltalake.exceptions import DeltaError  # noqa: PLC0415 - an extra

        table = self._opened()
        if table is None:
            raise self._failure(FileNotFoundError("there is no table"))
        version = table.version()
        try:
            with asking(self._path):
                count = compacted(table, self._path)
                self._keep(version)
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise self._failure(error) from error
        return count

    def spare(self) -> int:
        """Return how many files could be parts of larger ones: several in a partition, less than half as large."""
        with asking(self._path):
            return spare(self._table)

    def rows(self, files: Callable[[str], bool], *, merged: bool, every: bool) -> pa.Table | None:
        """Return the rows of some files; if rows are ``merged``, all. ``every``: the files are all of the pump's.

        ``None`` if the log has changes that move rows into other files.
        """
        table = self._opened()
        if table is None:
            return pa.table({})
        if merged:
            return whole(table, self._path)
        history = table.history()
        done, pumps = (
            {commit.get("operation") for commit in history},
            {commit.get(PUMP) for commit in history if _adds(commit)},
        )
        if history[-1]["version"] or done - {"CREATE TABLE", "WRITE", "OPTIMIZE", "ADD FEATURE"}:
            return None
        if "OPTIMIZE" in done:
            return whole(table, self._path) if every and len(pumps) == 1 and None not in pumps else None
        # The log has paths as parts of URLs; `file_uris` would also encode the table's own folder.
        paths = pa.table(table.get_add_actions(flatten=False))["path"].to_pylist()
        names = sorted(unquote(path) for path in paths)
        parts = [read_table(self._path / name) for name in names if files(published(name))]
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})

    def _complete(self) -> None:
        """Add NOT NULL to the feature list. Spark requires it; deltalake omits it beside TIMESTAMP_NTZ."""
        from deltalake import TableFeatures  # noqa: PLC0415 - an extra

        listed = self._table.protocol().writer_features
        if listed and "invariants" not in listed and not all(field.nullable for field in self._table.schema().fields):
            self._table.alter.add_feature(TableFeatures.Invariants, allow_protocol_versions_increase=True)

    def _keep(self, before: int) -> None:
        """Make the new entries of the log durable; deltalake does not."""
        self._table.update_incremental()
        if isinstance(self._path, ObjectPlace):  # objects in a store are durable
            return
        for version in range(before + 1, self._table.version() + 1):
            with contextlib.suppress(FileNotFoundError):  # the log may have been cleaned up to there
                sync(self._path / LOG / f"{version:020}.json")
        sync(self._path / LOG)

    def _opened(self) -> Any:
        try:
            from deltalake import DeltaTable  # noqa: PLC0415 - an extra
            from deltalake.exceptions import DeltaError, TableNotFoundError  # noqa: PLC0415
        except ImportError as error:
            what = f"the pump {self._pump} writes to a Delta table, and the package deltalake is not installed"
            raise refuse("R560", what, "Install it: pip install 'rowtime[delta]'.") from error
        if isinstance(self._path, ObjectPlace):
            if self._table is None:  # otherwise errors of the store would have no code, and be retried
                self._path.is_dir()
        elif not (self._path / LOG).is_dir():
            self._table = None
            return None
        try:
            with asking(self._path):
                if self._table is None:
                    self._table = DeltaTable(str(self._path), storage_options=deltalake_settings(self._path))
                else:
                    self._table.update_incremental()
        except TableNotFoundError:
            self._table = None
        except DeltaError as error:
            self._table = None
            raise self._failure(error) from error
        return self._table

    def _failure(self, error: Exception) -> Failure:
        message = str(error).split("\n", 1)[0]
        what = f"the pump {self._pump} cannot write to or read the Delta table {self._path}: {message}"
        return Failure(Problem("R565", what, hint=FOLDER_HINT))

    def _add(self, files: Sequence[Place], properties: Any) -> None:
        from deltalake.transaction import AddAction  # noqa: PLC0415 - an extra

        table, actions = self._table, []
        partitions = table.metadata().partition_columns
        for file in files:
            size, modified = size_of(file)
            parquet = pq.ParquetFile(content_of(file))
            values = partition_of(parquet, partitions)
            stats = json.dumps(statistics(parquet.metadata, partitions))
            actions.append(AddAction(below(file, self._path), size, values, modified, True, stats))  # noqa: FBT003
        table.create_write_transaction(actions, "append", table.schema(), partitions, commit_properties=properties)

    def _merge(self, ready: Ready, properties: Any) -> None:
        """MERGE the last row of each key; if nothing changes, make a commit without rows for the mark."""
        rows, gone = last_of_each(pa.concat_tables(map(read_table, ready.files)), ready.key), ready.gone
        names = [name for name in rows.column_names if name != gone]
        takes = f"source.{quoted(gone)} = 'RETRACT'" if gone else "false"
        values = {quoted(name): f"source.{quoted(name)}" for name in names}
        same = " AND ".join(f"target.{quoted(name)} = source.{quoted(name)}" for name in ready.key)
        version = self._table.version()
        merge = self._table.merge(
            rows,
            same,
            source_alias="source",
            target_alias="target",
            writer_properties=_written(self._table),
            commit_properties=properties,
        )
        if gone:
            merge = merge.when_matched_delete(takes)
        merge.when_matched_update(values, f"NOT ({takes})").when_not_matched_insert(values, f"NOT ({takes})").execute()
        if self._table.version() == version:
            self._add((), properties)


def _written(table: Any) -> Any:
    """Return options for deltalake's files: with statistics of the columns that all readers compare alike."""
    from deltalake import ColumnProperties, WriterProperties  # noqa: PLC0415 - an extra

    measured = ColumnProperties(statistics_enabled="PAGE")
    names = compared(pa.schema(table.schema().to_arrow()))
    unmeasured = ColumnProperties(statistics_enabled="NONE")
    return WriterProperties(default_column_properties=unmeasured, column_properties=dict.fromkeys(names, measured))


def _adds(version: Mapping[str, Any]) -> bool:
    """Return True if a version adds rows."""
    return version.get("operation") == "WRITE"


# -- features -----------------------------------------------------------------------------


def _odd(table: Any, columns: StructType) -> str:
    """Return what rowtime cannot write, in words; empty for nothing."""
    protocol, settings = table.protocol(), table.metadata().configuration
    features = set(protocol.writer_features or ()) | set(protocol.reader_features or ())
    if unknown := sorted(features - _WRITES):
        return f"has the feature {unknown[0]}, which rowtime does not support"
    if protocol.min_writer_version > _HIGHEST:
        return f"requires writer version {protocol.min_writer_version}, which rowtime does not support"
    return next(_used(settings, columns), "")


def _used(settings: Mapping[str, str], columns: StructType) -> Iterator[str]:
    if settings.get("delta.columnMapping.mode", "none") != "none":
        yield "maps the names of its columns (delta.columnMapping.mode)"
    for name in settings:
        if name.startswith("delta.constraints."):
            yield f"has the constraint {name.removeprefix('delta.constraints.')}, which only its own writers check"
    if settings.get("delta.enableRowTracking", "false").lower() == "true":
        yield "tracks rows (delta.enableRowTracking)"
    for field in columns.fields:
        for kind in ("delta.generationExpression", "delta.identity.start", "delta.invariants"):
            if kind in field.metadata:
                yield f"has {kind} on its column {field.name}, which only its own writers compute or check"
