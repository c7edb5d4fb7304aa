#!/usr/bin/env bash
# PySpark 4.2.0 with pyarrow 26.0.1: a column of structs of which one is NULL cannot be fetched as Arrow, if a field of
# the struct is never NULL.
#
# Behaviour: `IF(id = 0, named_struct('x', 'a'), NULL)` has the type STRUCT<x: STRING NOT NULL>, and is NULL in some rows,
# which is allowed: the field is required only where there is a struct. collect() gives the rows, and so does toPandas(),
# also with spark.sql.execution.arrow.pyspark.enabled. toArrow() ends with ArrowInvalid about a view of nulls as
# non-nullable. Without a NULL struct, or after a cast to a struct whose field may be NULL, it works. It matters to whoever
# fetches results of CASE, or of a function that gives a struct or NULL.
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
spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
spark.conf.set("spark.sql.execution.arrow.pyspark.fallback.enabled", "false")
columns = {
    "text": "IF(id = 0, named_struct('x', 'a'), NULL)",
    "number": "IF(id = 0, named_struct('x', id), NULL)",
    "none is NULL": "named_struct('x', 'a')",
    "cast": "CAST(IF(id = 0, named_struct('x', 'a'), NULL) AS STRUCT<x: STRING>)",
}
ways = {
    "collect": lambda rows: [one and one.x for (one,) in rows.collect()],
    "toArrow": lambda rows: [one and one["x"] for one in rows.toArrow()["s"].to_pylist()],
    "toPandas": lambda rows: len(rows.toPandas()),
}
for name, text in columns.items():
    rows = spark.range(0, 2, 1, 1).selectExpr(f"{text} AS s")
    for way, fetch in ways.items():
        try:
            seen = fetch(rows)
        except pa.ArrowInvalid:
            seen = "ArrowInvalid"
        print(f"{name}: {way}: {seen}")
P
diff "$d/out" - <<'T'
text: collect: ['a', None]
text: toArrow: ArrowInvalid
text: toPandas: 2
number: collect: [0, None]
number: toArrow: ArrowInvalid
number: toPandas: 2
none is NULL: collect: ['a', 'a']
none is NULL: toArrow: ['a', 'a']
none is NULL: toPandas: 2
cast: collect: ['a', None]
cast: toArrow: ['a', None]
cast: toPandas: 2
T
echo "as described"
