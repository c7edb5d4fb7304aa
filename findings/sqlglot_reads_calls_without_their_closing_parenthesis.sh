#!/usr/bin/env bash
# sqlglot 30.30.0: a call with words among its arguments may lack its closing parenthesis, without an error.
#
# Behaviour: EXTRACT, FLOOR, TRIM, SUBSTRING, POSITION, CAST and other functions with a parser of their own are read as if
# the parenthesis was there, at the strictest error level too, so of `FLOOR(FLOOR(x) * 2` it decides in silence what the
# outer call rounds. ABS without it is refused. Output seen (Python 3.11): see below. It matters to whoever checks SQL
# with it, or writes a dialect.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet sqlglot==30.30.0
"$d/v/bin/python" - <<'P' | tee "$d/out"
import sqlglot

for call in (
    "EXTRACT(YEAR FROM d",
    "FLOOR(FLOOR(x) * 2",
    "TRIM(BOTH 'a' FROM s",
    "SUBSTRING(s FROM 2",
    "POSITION('a' IN s",
    "ABS(x",
    "CAST(x AS INT",
):
    try:
        tree = sqlglot.parse_one(f"SELECT {call} AS y FROM t", dialect="spark", error_level=sqlglot.ErrorLevel.IMMEDIATE)
        print(f"{call}: {tree.expressions[0].sql('spark')}")
    except sqlglot.ParseError:
        print(f"{call}: ParseError")
P
diff "$d/out" - <<'T'
EXTRACT(YEAR FROM d: EXTRACT(YEAR FROM d) AS y
FLOOR(FLOOR(x) * 2: FLOOR(FLOOR(x) * 2) AS y
TRIM(BOTH 'a' FROM s: TRIM(BOTH 'a' FROM s) AS y
SUBSTRING(s FROM 2: SUBSTRING(s, 2) AS y
POSITION('a' IN s: LOCATE('a', s) AS y
ABS(x: ParseError
CAST(x AS INT: CAST(x AS INT) AS y
T
echo "as described"
