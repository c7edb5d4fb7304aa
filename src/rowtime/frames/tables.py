"""Arrow tables in the place of Spark rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rowtime.frames.kinds import arrow_of, without_zones

Column = tuple[str, str]  # its name, and its type in Spark's words


def put_together(fields: Sequence[Column], tables: Sequence[pa.Table]) -> pa.Table:
    """Combine tables into one with these columns; a missing column is NULL."""
    whole = pa.concat_tables(tables, promote_options="permissive")
    present = set(whole.column_names)
    nulls = ((name, pa.nulls(whole.num_rows, arrow_of(kind))) for name, kind in fields if name not in present)
    for name, column in nulls:
        whole = whole.append_column(name, column)
    return whole.select([name for name, _ in fields])


def stacked(one: pa.Table, other: pa.Table, order: Sequence[int]) -> pa.Table | None:
    """Return the rows of both; ``order``: the columns of the other by place. ``None`` if Arrow types differ."""
    columns = [other.column(place) for place in order]
    added = pa.Table.from_arrays(columns, names=one.column_names)
    return pa.concat_tables([one, added]) if one.schema.types == added.schema.types else None


def has(table: pa.Table, fields: Sequence[Column]) -> bool:
    """Return True if a table has these columns with the values that Spark would read."""
    present = {field.name: field.type for field in table.schema}
    return all(
        name in present and without_zones(present[name]) == without_zones(arrow_of(kind)) for name, kind in fields
    )
