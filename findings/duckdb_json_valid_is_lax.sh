#!/usr/bin/env bash
# DuckDB 2.0.0: json_valid() holds for texts that are no JSON, and what it extracts from them is none either.
#
# Behaviour: RFC 8259 has no comma behind the last element, and no NaN or Infinity. json_valid() is true for both, as is
# a cast to JSON. `->` returns NaN as a JSON value, which other parsers refuse (orjson does). Unquoted names, leading
# zeros and comments are refused. So a check of records by json_valid(), or by a cast, lets pass what Spark's from_json
# and most consumers take for malformed; whoever counts malformed records has to test for these forms themselves.
# Output seen (duckdb 2.0.0, orjson 3.11.5, Python 3.11): see below.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet duckdb==2.0.0 orjson==3.11.5
"$d/v/bin/python" - <<'P' | tee "$d/out"
import duckdb
import orjson

db = duckdb.connect()


def strict(text):
    try:
        return bool(orjson.loads(text)) or True
    except orjson.JSONDecodeError:
        return False


for text in ('{"a": 1}', '{"a": [1, 2,]}', '{"a": 1,}', '{"a": NaN}', '{"a": -Infinity}', '{a: 1}', '{"a": 01}'):
    valid = db.execute("SELECT json_valid(?)", [text]).fetchone()[0]
    print(f"{text}: DuckDB {valid}, orjson {strict(text)}")
    if valid:
        part = db.execute("SELECT CAST((CAST(? AS JSON) -> 'a') AS VARCHAR)", [text]).fetchone()[0]
        print(f"    a is {part}: orjson {strict(part)}")
P
diff "$d/out" - <<'T'
{"a": 1}: DuckDB True, orjson True
    a is 1: orjson True
{"a": [1, 2,]}: DuckDB True, orjson False
    a is [1,2]: orjson True
{"a": 1,}: DuckDB True, orjson False
    a is 1: orjson True
{"a": NaN}: DuckDB True, orjson False
    a is NaN: orjson False
{"a": -Infinity}: DuckDB True, orjson False
    a is -Infinity: orjson False
{a: 1}: DuckDB False, orjson False
{"a": 01}: DuckDB False, orjson False
T
echo "as described"
