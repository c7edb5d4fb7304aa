"""Whether two engines gave the same rows, compared as multisets, exactly."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

COLUMNS = ["w", "k", "c", "sv"]


def compare(ours: Path, theirs: Path, count: int) -> str:
    """Return ``equal``, or what differs.

    rowtime ends its stream, so it has all groups, which count every row; Spark keeps the last windows forever. So
    every window that Spark emitted must be there with the same rows.
    """
    mine, other = rows_of(ours), rows_of(theirs)
    if (counted := pc.sum(mine["c"]).as_py()) != count:
        return f"rowtime counted {counted} rows of {count}"
    closed = pc.is_in(mine["w"], pc.unique(other["w"]))
    mine = mine.filter(closed)
    if mine.num_rows != other.num_rows:
        return f"{mine.num_rows} groups against {other.num_rows}"
    return "equal" if sorted_rows(mine).equals(sorted_rows(other)) else "groups differ"


def rows_of(folder: Path) -> pa.Table:
    files = [path for path in folder.glob("*.parquet") if not path.name.startswith((".", "_"))]
    parts = [pq.read_table(path, columns=COLUMNS, partitioning=None) for path in files]
    rows = pa.concat_tables(parts, promote_options="permissive")
    # Spark writes its timestamps as INT96, which are read as nanoseconds.
    times = rows["w"].cast(pa.timestamp("us", "UTC"), safe=False)
    return pa.table(
        {name: column.cast(pa.int64()) for name, column in zip(COLUMNS, [times, *rows.columns[1:]], strict=True)}
    )


def sorted_rows(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in COLUMNS]).combine_chunks()
