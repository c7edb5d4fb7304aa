#!/usr/bin/env bash
# DuckDB 2.0.0: arithmetic with a NULL that is written in the query does not compute the other operand, so it cannot fail.
#
# Behaviour: `CAST(s AS INTEGER) + NULL::INTEGER` is NULL for a text that is no number, and `(i + 1) + NULL::INTEGER` is
# NULL for the greatest INTEGER. The same NULL from a column lets both fail, and so do comparisons and GREATEST with a
# NULL that is written. No optimizer does this: all of them are off here, so the binder has replaced the sum. Output
# seen (duckdb 2.0.0, Python 3.11): see below. It matters to whoever switches DuckDB's optimizers off to have each row's
# failures.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet duckdb==2.0.0
"$d/v/bin/python" - <<'P' | tee "$d/out"
import duckdb

db = duckdb.connect()
rules = [name for (name,) in db.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
db.execute(f"SET disabled_optimizers = '{','.join(rules)}'")
db.execute("CREATE TABLE t AS SELECT 2147483647::INTEGER AS i, 'x' AS s, NULL::INTEGER AS n")


def outcome(sql):
    try:
        return db.execute(f"SELECT {sql} FROM t").fetchall()[0][0]
    except duckdb.Error as error:
        return type(error).__name__


for sql in (
    "CAST(s AS INTEGER) + NULL::INTEGER",
    "CAST(s AS INTEGER) + n",
    "(i + 1) + NULL::INTEGER",
    "(i + 1) + n",
    "CAST(s AS INTEGER) = NULL::INTEGER",
    "greatest(CAST(s AS INTEGER), NULL::INTEGER)",
):
    print(f"{sql}: {outcome(sql)}")
P
diff "$d/out" - <<'T'
CAST(s AS INTEGER) + NULL::INTEGER: None
CAST(s AS INTEGER) + n: ConversionException
(i + 1) + NULL::INTEGER: None
(i + 1) + n: OutOfRangeException
CAST(s AS INTEGER) = NULL::INTEGER: ConversionException
greatest(CAST(s AS INTEGER), NULL::INTEGER): ConversionException
T
echo "as described"
