"""An Iceberg table through its catalog, without Spark's connector: by pyiceberg, which `iceberg_merge` imports too.

Spark's tasks have written the files; a transaction of the catalog adds them, with the mark of the pump (`lake`) in the
properties of the table, which outlive every snapshot, and in those of the snapshot, where people look for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowtime.core.capabilities import arrow_schema
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.shared_paths import sync
from rowtime.core.stores import ObjectPlace, Place, below
from rowtime.core.time import to_text
from rowtime.runtime.iceberg_catalog import ask_the_store, given_in, opened, place_in
from rowtime.runtime.sinks.failures import naming
from rowtime.runtime.sinks.iceberg_merge import Merging
from rowtime.runtime.sinks.lake import Conflict, LakeSink, Mark, Ready, TableState, published
from rowtime.state.memory import read_table

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from rowtime.operators.sinks.sink import Sink as SinkNode

_RETRIES: Final = "commit.retry.num-retries"
_SCHEME: Final = "file://"
_DATA: Final = "data"
PUMP: Final = "rowtime.pump"  # in the properties of a snapshot
ROWS: Final = "rowtime.rows"  # of the pump, up to this snapshot
_VERSIONS: Final = (1, 2)
_GONE: Final = "A file that the catalog or the table names is gone. Restore it from a copy; nothing else was changed."
_HINT: Final = "Check the catalog, who may write to it, and the space on its disk. The tick is repeated."


def iceberg_table(options: Mapping[str, str], pump: str) -> IcebergTable:
    """Return the table that the options of a sink name."""
    return IcebergTable(options["catalog"], given_in(options), options["table"], pump)


def iceberg_sink(node: SinkNode) -> LakeSink:
    """Return the sink of a pump into the Iceberg ``table`` of a ``catalog``."""
    options = dict(node.options)
    table = iceberg_table(options, node.name.removesuffix(".sink"))
    with naming(node):  # the catalog names the store, which may not answer
        return LakeSink(node, table, table.folder, f"the Iceberg table {options['table']}")


class IcebergTable:
    """The table ``name`` of a catalog that pyiceberg knows, or that options describe."""

    promised, alone = True, False

    def __init__(self, catalog: str, given: Mapping[str, str], name: str, pump: str) -> None:
        self._called, self._given, self._name, self._pump = catalog, given, name, pump
        self._catalog: Any = None
        self._table: Any = None

    @property
    def folder(self) -> Place:
        """Return the folder of the table's data files."""
        self._opened()
        return self._place / _DATA

    @property
    def _location(self) -> str:
        """Return the table's folder, as the catalog spells it."""
        location: str = self._home if self._table is None else self._table.location()
        return location.rstrip("/")

    @property
    def _place(self) -> Place:
        place = place_in(self._location, self._opened_catalog().properties, "the warehouse")
        if place is None:
            what = f"the Iceberg table {self._name} is at {self._location}: rowtime cannot write there"
            hint = "Use a catalog whose warehouse is a folder that the workers share (file:///…) or a bucket (s3://…)."
            raise refuse("R572", what, hint)
        return place

    def _spelled(self, place: Place) -> str:
        """Return a file's name in the metadata of the table."""
        if isinstance(place, ObjectPlace):
            return f"{self._location}/{below(place, self._place)}"
        return f"{_SCHEME}{place}"

    @property
    def _home(self) -> str:
        warehouse = self._opened_catalog().properties.get("warehouse", "")
        if not warehouse:
            what = f"the catalog {self._called} does not say where to create a new table"
            raise refuse("R572", what, "Give it a warehouse: OPTIONS (catalog.warehouse 'file:///…'), or 's3://…'.")
        return "/".join([warehouse.rstrip("/"), *self._name.split(".")])

    def look(self, app: str) -> TableState | None:
        """Return the present table, if there is one; ``app``: whose mark."""
        table = self._opened()
        if table is None:
            return None
        from pyiceberg.transforms import IdentityTransform  # noqa: PLC0415 - an extra
        from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - not for those who only plan
        from pyspark.sql.types import StructType  # noqa: PLC0415

        fields, odd = table.spec().fields, ""
        partitions = tuple(table.schema().find_column_name(field.source_id) or "" for field in fields)
        if table.metadata.format_version not in _VERSIONS:
            odd = f"has format version {table.metadata.format_version}, which rowtime does not write"
        if not all(isinstance(field.transform, IdentityTransform) for field in fields):
            odd = (
                "has partitions that are computed (bucket, truncate, day, …), and rowtime writes those of whole values"
            )
        columns = StructType()
        try:
            columns = from_arrow_schema(table.schema().as_arrow(), prefer_timestamp_ntz=True)
        except Exception as error:  # noqa: BLE001 - a type that Spark does not have, whatever error PySpark raises
            odd = f"has a type that Spark does not have ({error})"
        written = table.properties.get(_property(app), "")
        tick, rows, link = [*written.split(), ""][:3] if written else ("-1", "0", "")
        mark = Mark(int(tick), int(rows), link)
        return TableState(str(table.metadata.table_uuid), columns, partitions, mark, odd)

    def marks(self, app: str) -> list[int]:
        """Return how many rows of a pump the table had by each of its snapshots."""
        table = self._opened()
        summaries = (summary.summary for summary in table.snapshots() if summary.summary) if table is not None else ()
        return [int(summary[ROWS]) for summary in summaries if summary.get(PUMP) == app]

    def create(self, columns: StructType, partitions: Sequence[str]) -> None:
        """Create the table. Raises `Conflict` if somebody else just has."""
        from pyiceberg.exceptions import (  # noqa: PLC0415 - an extra
            CommitFailedException,
            CommitStateUnknownException,
            TableAlreadyExistsError,
        )

        catalog, home = self._opened_catalog(), self._home
        schema = arrow_schema(columns)
        namespace = self._name.rpartition(".")[0]
        try:
            _make(catalog, namespace)
            with (
                catalog.create_table_transaction(self._name, schema, location=home) as transaction,
                transaction.update_spec() as spec,
            ):
                for name in partitions:
                    spec.add_identity(name)
        except (TableAlreadyExistsError, CommitFailedException, CommitStateUnknownException) as error:
            raise Conflict from error
        except Exception as error:
            if self._of_the_disk(error):
                raise
            raise self._failure(error) from error

    def commit(self, ready: Ready) -> None:
        """Make one transaction. Raises `Conflict`."""
        from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException  # noqa: PLC0415

        table = self._table
        # pyiceberg's own retries would not read the mark again; this changes only this process's view, and no table.
        properties = {**table.metadata.properties, _RETRIES: "0"}
        table.metadata = table.metadata.model_copy(update={"properties": properties})
        mark = f"{ready.mark.tick} {ready.mark.rows} {ready.mark.link}".rstrip()
        bound = to_text(ready.bound)
        summary = {
            PUMP: ready.app,
            "rowtime.tick": str(ready.mark.tick),
            ROWS: str(ready.mark.rows),
            "rowtime.bound": bound,
        }
        merging = Merging(table, ready, self._place / _DATA, self._spelled) if ready.key else None
        before = table.metadata.current_snapshot_id
        try:
            with table.transaction() as changes:
                if merging is not None:
                    merging.into(changes, summary)
                else:
                    files = [self._spelled(file) for file in ready.files]
                    changes.add_files(files, snapshot_properties=summary, check_duplicate_files=False)
                changes.set_properties({_property(ready.app): mark})
        except CommitFailedException as error:
            if merging is not None:
                merging.discard()
            raise Conflict from error
        except CommitStateUnknownException as error:
            raise Conflict from error
        except Exception as error:
            if self._of_the_disk(error):
                raise
            raise self._failure(error) from error
        self._keep(before)

    def compact(self) -> int:
        """Combine small files into large ones; return their number. Raises `Conflict`."""
        table = self._opened()
        if table is None:
            raise self._failure(FileNotFoundError("there is no table"))
        from pyiceberg.exceptions import (  # noqa: PLC0415 - an extra
            CommitFailedException,
            CommitStateUnknownException,
            ValidationException,
        )

        from rowtime.runtime.sinks.iceberg_compaction import compacted  # noqa: PLC0415 - it imports pyiceberg

        before = table.metadata.current_snapshot_id
        try:
            count = compacted(table, self._place / _DATA, self._spelled)
        except (CommitFailedException, CommitStateUnknownException, ValidationException) as error:
            raise Conflict from error
        except Exception as error:
            raise self._failure(error) from error
        if count:
            self._keep(before)
        return count

    def spare(self) -> int:
        """Return how many files could be parts of larger ones."""
        from rowtime.runtime.sinks.iceberg_compaction import spare  # noqa: PLC0415 - it imports pyiceberg

        return spare(self._table)

    def rows(self, files: Callable[[str], bool], *, merged: bool, every: bool) -> pa.Table | None:
        """Return the rows of some files; if rows are ``merged``, all. ``every``: the files are all of the pump's.

        ``None`` if snapshots have had changes, or no longer exist.
        """
        table = self._opened()
        if table is None:
            return pa.table({})
        if merged:
            return table.scan().to_arrow()
        done = [
            (str(item.summary.operation.value), item.summary.get(PUMP)) for item in table.snapshots() if item.summary
        ]
        kinds = {kind for kind, _ in done}
        if kinds - {"append", "replace"} or (table.snapshots() and table.snapshots()[0].parent_snapshot_id is not None):
            return None
        if "replace" in kinds:
            pumps = {pump for kind, pump in done if kind == "append"}
            return table.scan().to_arrow() if every and len(pumps) == 1 and None not in pumps else None
        folder = f"{self._spelled(self._place / _DATA)}/"
        names = sorted(item.removeprefix(folder) for item in table.inspect.files()["file_path"].to_pylist())
        parts = [read_table(self._place / _DATA / name) for name in names if files(published(name))]
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})

    def _keep(self, before: int | None) -> None:
        """Make the new metadata durable; pyiceberg does not. ``before``: the snapshot until then."""
        if isinstance(self._place, ObjectPlace):  # objects in a store are durable
            return
        snapshot, places = self._table.current_snapshot(), [self._table.metadata_location]
        if snapshot is not None and snapshot.snapshot_id != before:
            added = (
                manifest
                for manifest in snapshot.manifests(self._table.io)
                if manifest.added_snapshot_id == snapshot.snapshot_id
            )
            places += [snapshot.manifest_list, *(manifest.manifest_path for manifest in added)]
        paths = [Path(place.removeprefix(_SCHEME)) for place in places]
        for path in (*paths, *{path.parent for path in paths}):
            sync(path)

    def _opened_catalog(self) -> Any:
        if self._catalog is None:
            try:
                self._catalog = opened(self._called, self._given)
            except ImportError as error:
                what = f"the pump {self._pump} writes to an Iceberg table, and the package pyiceberg is not installed"
                raise refuse("R560", what, "Install it: pip install 'rowtime[iceberg]'.") from error
            except Exception as error:
                raise self._failure(error) from error
        return self._catalog

    def _opened(self) -> Any:
        catalog = self._opened_catalog()
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError  # noqa: PLC0415 - an extra

        try:
            self._table = catalog.load_table(self._name)
        except (NoSuchTableError, NoSuchNamespaceError):
            self._table = None
        except Exception as error:
            self._table = None
            raise self._failure(error) from error
        return self._table

    def _of_the_disk(self, error: Exception) -> bool:
        """Return True if the error is a disk's own."""
        return isinstance(error, OSError) and error.errno is not None and not isinstance(self._place, ObjectPlace)

    def _failure(self, error: Exception) -> Failure:
        """Return an error of a catalog or pyiceberg, in one line; errors of the store have codes of their own."""
        ask_the_store(error, self._catalog)
        message = str(error).split("\n", 1)[0]
        what = f"the pump {self._pump} cannot reach the Iceberg table {self._name}: {message}"
        return Failure(Problem("R565", what, hint=_GONE if isinstance(error, FileNotFoundError) else _HINT))


def _make(catalog: Any, namespace: str) -> None:
    """Create a namespace, unless it exists or somebody else creates it now."""
    try:
        catalog.create_namespace_if_not_exists(namespace)
    except Exception:
        if not catalog.namespace_exists(namespace):
            raise


def _property(app: str) -> str:
    """Return the property in which a table has the mark of a pump."""
    return "rowtime.mark." + app.removeprefix("rowtime/").replace("/", ".")
