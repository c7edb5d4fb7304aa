"""Which columns of a Parquet file get statistics: least and greatest values by which readers skip parts of a file.

Arrow omits NaN in them. For Spark NaN is the greatest value, so it would skip rows that match.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


def trusted(schema: pa.Schema, rows: pa.Table | None = None) -> bool | list[str]:
    """Return Arrow's option ``write_statistics``: all, or the paths of the columns without NaN.

    Without ``rows``, the whole content of the file, no floating-point column has statistics.
    """
    leaves = [(path, kind) for field in schema for path, kind in _leaves(field.name, field.type)]
    doubtful = {path for path, kind in leaves if pa.types.is_floating(kind) and _doubtful(path, rows)}
    return True if not doubtful else list({path for path, _ in leaves} - doubtful)


def _doubtful(path: str, rows: pa.Table | None) -> bool:
    if rows is None or rows.column_names.count(path) != 1 or not pa.types.is_floating(rows[path].type):
        return True
    return pc.any(pc.is_nan(rows[path])).as_py() is True


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the columns of a value in a file, as Parquet names them."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_nested(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind
