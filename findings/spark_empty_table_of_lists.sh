#!/usr/bin/env bash
# PySpark 4.2.0 with pyarrow 26.0.1: createDataFrame does not take an Arrow table without rows if a column is nested.
#
# Behaviour: it depends on how the table became empty. table.filter(nobody) leaves columns without a chunk, and then a
# column of lists, maps or structs raises ArrowInvalid about a "ChunkedArray from empty vector"; a column of numbers does
# not. combine_chunks() does not help. table.slice(0, 0) and schema.empty_table() have an empty chunk and are taken. So
# code that filters works until, one day, no row is left.
# Output seen: the lines at the end. The script fails if they change.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyspark==4.2.0 pyarrow==26.0.1 pandas==2.3.3
PYSPARK_PYTHON="$d/v/bin/python" "$d/v/bin/python" - 2>"$d/log" <<'P' | tee "$d/out"
import pyarrow as pa
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
table = pa.table({"n": [1, 2], "list": [[1], [2]], "struct": [{"x": 1}, {"x": 2}]})
filtered = table.filter(pa.array([False, False]))
ways = {
    "filter": filtered, "filter and combine": filtered.combine_chunks(), "slice": table.slice(0, 0),
    "empty_table": table.schema.empty_table(),
}
for way, empty in ways.items():
    for name in table.column_names:
        try:
            seen = f"{spark.createDataFrame(empty.select([name])).count()} rows"
        except pa.ArrowInvalid:
            seen = "ArrowInvalid"
        print(f"{way}: {name}: {seen}")
P
diff "$d/out" - <<'T'
filter: n: 0 rows
filter: list: ArrowInvalid
filter: struct: ArrowInvalid
filter and combine: n: 0 rows
filter and combine: list: ArrowInvalid
filter and combine: struct: ArrowInvalid
slice: n: 0 rows
slice: list: 0 rows
slice: struct: 0 rows
empty_table: n: 0 rows
empty_table: list: 0 rows
empty_table: struct: 0 rows
T
echo "as described"
