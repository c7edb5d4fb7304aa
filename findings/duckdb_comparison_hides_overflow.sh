#!/usr/bin/env bash
# DuckDB 2.0.0: an overflow vanishes in a comparison with a constant.
#
# Behaviour: `i + 1` fails for the greatest INTEGER, as it should. `i + 1 > 0` does not: the optimizer's rule
# expression_rewriter moves the constant over the comparison (i > -1), so the failing addition is never made. With this
# rule off the query fails. TRY(i + 1 > 0) is true and not NULL. So whether a row fails depends on the plan, and an
# engine that checks rows by running them through DuckDB sees rows pass which its own arithmetic refuses.
# Output seen (duckdb 2.0.0, Python 3.11): see below. It matters to whoever translates ANSI SQL to DuckDB.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet duckdb==2.0.0
"$d/v/bin/python" - <<'P' | tee "$d/out"
import duckdb

db = duckdb.connect()
db.execute("CREATE TABLE t AS SELECT 2147483647::INTEGER AS i")


def outcome(sql):
    try:
        return db.execute(sql).fetchall()[0][0]
    except duckdb.Error as error:
        return type(error).__name__


print("i + 1:", outcome("SELECT i + 1 FROM t"))
print("i + 1 > 0:", outcome("SELECT i + 1 > 0 FROM t"))
print("TRY(i + 1 > 0):", outcome("SELECT TRY(i + 1 > 0) FROM t"))
db.execute("SET disabled_optimizers = 'expression_rewriter'")
print("i + 1 > 0, rule off:", outcome("SELECT i + 1 > 0 FROM t"))
P
diff "$d/out" - <<'T'
i + 1: OutOfRangeException
i + 1 > 0: True
TRY(i + 1 > 0): True
i + 1 > 0, rule off: OutOfRangeException
T
echo "as described"
