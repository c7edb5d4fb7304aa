"""Replaces rows by key in an Iceberg table, as one snapshot: pyiceberg's `upsert` makes several.

Copy on write: each file with a row of one of the keys is written again without these rows. The new rows go into files
of their own. One snapshot removes the old files and adds the new ones, so readers see all of it or nothing.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import ROW_NUMBER
from rowtime.core.stores import Place
from rowtime.runtime.sinks.lake import Ready
from rowtime.runtime.sinks.lake_files import NewFile
from rowtime.runtime.sinks.lake_rows import last_of_each
from rowtime.state.memory import read_table

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

_FEW: Final = 200  # values up to which Iceberg compares each with the least and greatest of a file
_NUMBERS: Final = itertools.count()
_COMPARED: Final = (
    *(pa.types.is_integer, pa.types.is_string, pa.types.is_date, pa.types.is_timestamp),
    *(pa.types.is_decimal, pa.types.is_boolean),
)


@dataclass
class Merging:
    """The changes of one commit to a ``table``; files that it writes go to ``folder``, and are ``written``.

    ``spelled`` returns a file's name in the metadata of the table.
    """

    table: Any
    ready: Ready
    folder: Place
    spelled: Callable[[Place], str]
    written: list[NewFile] = field(default_factory=list)

    def into(self, changes: Any, properties: Mapping[str, str]) -> None:
        """Add the snapshot to a transaction of the table; ``properties``: its own. If it fails, no file stays."""
        try:
            self._add(changes, properties)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove the written files, after a commit that did not happen."""
        for file in self.written:
            file.remove()

    def _add(self, changes: Any, properties: Mapping[str, str]) -> None:
        from pyiceberg.io.pyarrow import parquet_files_to_data_files  # noqa: PLC0415 - an extra
        from pyiceberg.table import TableProperties  # noqa: PLC0415

        rows = last_of_each(pa.concat_tables(map(read_table, self.ready.files)), self.ready.key)
        stays = rows.filter(pc.not_equal(rows[self.ready.gone], "RETRACT")) if self.ready.gone else rows
        keys = rows.select(list(self.ready.key))
        old = list(self._without(keys.cast(pa.schema([self._schema.field(name) for name in keys.column_names]))))
        self._write(stays)
        metadata = changes.table_metadata
        if metadata.name_mapping() is None:  # the files have column names, not ids
            mapping = metadata.schema().name_mapping.model_dump_json()
            changes.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping})
        # Also if nothing changes: a commit of properties alone, which requires no snapshot, could set the mark back.
        update = changes.update_snapshot(snapshot_properties=dict(properties))
        with update.overwrite() if old else update.fast_append() as snapshot:
            for file in old:
                snapshot.delete_data_file(file)
            names = (self.spelled(file.place) for file in self.written)
            for file in parquet_files_to_data_files(self.table.io, changes.table_metadata, names):
                snapshot.append_data_file(file)

    def _without(self, keys: pa.Table) -> Iterator[Any]:
        """Yield the files that have rows of these keys; their other rows have been written again."""
        from pyiceberg.expressions import AlwaysTrue  # noqa: PLC0415 - an extra
        from pyiceberg.io.pyarrow import ArrowScan  # noqa: PLC0415

        table = self.table
        scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        for task in table.scan(row_filter=_around(keys)).plan_files():
            rows = scan.to_table([task])
            left = _others(rows, keys)
            if left.num_rows < rows.num_rows:
                self._write(left)
                yield task.file

    @property
    def _schema(self) -> pa.Schema:
        from pyiceberg.io.pyarrow import schema_to_pyarrow  # noqa: PLC0415 - an extra

        return schema_to_pyarrow(self.table.schema(), include_field_ids=False)

    def _write(self, rows: pa.Table) -> None:
        """Write rows as files of the table, one for each partition."""
        schema = self._schema
        names, count = set(rows.column_names), rows.num_rows
        columns = [
            rows[field.name].cast(field.type) if field.name in names else pa.nulls(count, field.type)
            for field in schema
        ]
        whole = pa.table(columns, schema=schema)
        source = self.table.schema()
        partitions = [source.find_column_name(field.source_id) for field in self.table.spec().fields]
        stem = f"part-{self.ready.mark.tick:012d}-{uuid.uuid4().hex}"
        for part in _split(whole, partitions):
            file = NewFile(self.folder / f"{stem}-{next(_NUMBERS)}.parquet", schema)
            self.written.append(file)
            file.write(part)
            file.close()


def _split(rows: pa.Table, partitions: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the rows of each partition."""
    if not partitions or not rows.num_rows:
        yield from [rows] if rows.num_rows else []
        return
    numbered = rows.select(partitions).append_column(ROW_NUMBER, pa.array(np.arange(rows.num_rows)))
    for group in numbered.group_by(partitions).aggregate([(ROW_NUMBER, "list")])[f"{ROW_NUMBER}_list"]:
        yield rows.take(group.values)


def _others(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """Return the rows without those of some keys."""
    names = keys.column_names
    numbered = rows.select(names).append_column(ROW_NUMBER, pa.array(np.arange(rows.num_rows)))
    indices = numbered.join(keys.cast(numbered.select(names).schema), names, join_type="left semi")[
        ROW_NUMBER
    ].to_numpy()
    keep = np.ones(rows.num_rows, dtype=bool)
    keep[indices] = False
    return rows.filter(pa.array(keep))


def _around(keys: pa.Table) -> BooleanExpression:
    """Return which files may have rows of some keys: by each column's values, or by the range of many."""
    from pyiceberg.expressions import AlwaysTrue, And  # noqa: PLC0415 - an extra

    condition: BooleanExpression = AlwaysTrue()
    for column in keys.schema:
        name, kind = column.name, column.type
        if not any(is_of(kind) for is_of in _COMPARED):
            continue
        values = pc.unique(keys[name])
        if len(values) <= _FEW:
            condition = And(condition, _expression("In", name, set(values.to_pylist())))
        else:
            ends = pc.min_max(values).as_py()
            condition = And(
                condition,
                _expression("GreaterThanOrEqual", name, ends["min"]),
                _expression("LessThanOrEqual", name, ends["max"]),
            )
    return condition


def _expression(kind: str, column: str, operand: Any) -> BooleanExpression:
    """Return an expression of pyiceberg; its type stubs require keywords that it does not accept."""
    from pyiceberg import expressions  # noqa: PLC0415 - an extra

    expression: BooleanExpression = getattr(expressions, kind)(column, operand)
    return expression
