#!/usr/bin/env bash
# DuckDB 2.0.0 refuses a slice of an Arrow table that has structs in structs, which it reads if the table is whole or if
# its structs are flat. A slice is what `table.slice`, `to_batches`, and every reader that passes a part on, give without
# a copy. Seen: rows 2 and 3 of four, as a slice, end with an InvalidInputException about an offset that the conversion
# would drop; the same rows copied (`combine_chunks` does not copy them, `concat_arrays` and `take` do) are read.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet duckdb==2.0.0 pyarrow==26.0.1
cat > "$place/slices.py" <<'PYTHON'
import duckdb
import pyarrow as pa

NESTED = pa.array([{"a": {"b": n}} for n in range(4)])
FLAT = pa.array([{"b": n} for n in range(4)])


def read(array):
    rows = pa.table({"s": array})
    try:
        return str([row[0] for row in duckdb.sql("SELECT s FROM rows").fetchall()])
    except duckdb.InvalidInputException as refused:
        return "refused, offset" if "offset" in str(refused) else str(refused)


print("flat slice:", read(FLAT.slice(2)))
print("nested whole:", read(NESTED))
print("nested slice:", read(NESTED.slice(2)))
print("nested slice, copied:", read(pa.concat_arrays([NESTED.slice(2), NESTED.slice(4)])))
print("nested slice, taken:", read(NESTED.take(pa.array([2, 3]))))
PYTHON
cat > "$place/expected" <<'TEXT'
flat slice: [{'b': 2}, {'b': 3}]
nested whole: [{'a': {'b': 0}}, {'a': {'b': 1}}, {'a': {'b': 2}}, {'a': {'b': 3}}]
nested slice: refused, offset
nested slice, copied: [{'a': {'b': 2}}, {'a': {'b': 3}}]
nested slice, taken: [{'a': {'b': 2}}, {'a': {'b': 3}}]
TEXT
"$place/venv/bin/python" "$place/slices.py" | tee "$place/seen"
diff "$place/expected" "$place/seen"
