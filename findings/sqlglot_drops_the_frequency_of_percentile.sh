#!/usr/bin/env bash
# sqlglot 30.30.0, dialect "spark": the third argument of `percentile` is dropped, without an error.
#
# Behaviour: Spark's documentation has `percentile(col, percentage [, frequency])`, with a positive integral frequency.
# It is how many times the value of a row counts, from a constant or a column, and 1 if absent; Databricks' documentation
# of this function says so in words. sqlglot reads the call as a Quantile, which has no place for it, at the strictest
# error level too, and writes a call of two arguments. That computes another value: of the rows (value, frequency)
# (0, 1) and (10, 9) the median is 10, and 5 without the frequency. The third argument of `percentile_approx` is kept.
# Output seen (Python 3.11): see below. It matters to whoever passes Spark's SQL through sqlglot, or looks in its tree
# for the columns that a query reads.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet sqlglot==30.30.0
"$d/v/bin/python" - <<'P' | tee "$d/out"
import sqlglot
from sqlglot import exp

for call in ("percentile(x, 0.5)", "percentile(x, 0.5, f)", "percentile(x, 0.5, 3)", "percentile_approx(x, 0.5, 100)"):
    tree = sqlglot.parse_one(f"SELECT {call} FROM t", dialect="spark", error_level=sqlglot.ErrorLevel.IMMEDIATE)
    columns = [column.name for column in tree.find_all(exp.Column)]
    print(f"{call}: {type(tree.expressions[0]).__name__}, columns {columns}, {tree.sql('spark')}")
P
diff "$d/out" - <<'T'
percentile(x, 0.5): Quantile, columns ['x'], SELECT PERCENTILE(x, 0.5) FROM t
percentile(x, 0.5, f): Quantile, columns ['x'], SELECT PERCENTILE(x, 0.5) FROM t
percentile(x, 0.5, 3): Quantile, columns ['x'], SELECT PERCENTILE(x, 0.5) FROM t
percentile_approx(x, 0.5, 100): ApproxQuantile, columns ['x'], SELECT PERCENTILE_APPROX(x, 0.5, 100) FROM t
T
echo "as described"
