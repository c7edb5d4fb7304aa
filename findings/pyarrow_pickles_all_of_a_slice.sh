#!/usr/bin/env bash
# pyarrow 26.0.1: a pickled slice of a table has the whole buffers of the table.
#
# Behaviour: three rows of a million, 24 bytes by `nbytes`, are 8 MB as a pickle, with protocol 5 too. The same rows as
# an IPC stream are less than a kilobyte: there, only the rows of the slice are written. So whoever sends parts of a table to
# other processes by pickle sends the whole table to each of them. Output seen (Python 3.11): see below.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyarrow==26.0.1
"$d/v/bin/python" - <<'P' | tee "$d/out"
import pickle

import pyarrow as pa

for name, values in (("numbers", range(1_000_000)), ("texts", ["x" * 20] * 1_000_000)):
    rows = pa.table({"a": values}).slice(500_000, 3)
    body = pa.BufferOutputStream()
    with pa.ipc.new_stream(body, rows.schema) as stream:
        stream.write_table(rows)
    sizes = [len(pickle.dumps(rows)), len(pickle.dumps(rows, 5)), len(pickle.dumps(rows["a"])), body.getvalue().size]
    print(name, rows.num_rows, "rows:", rows.nbytes, "bytes;", *(f"{size / 1e6:.1f} MB" for size in sizes))
P
diff "$d/out" - <<'T'
numbers 3 rows: 24 bytes; 8.0 MB 8.0 MB 8.0 MB 0.0 MB
texts 3 rows: 72 bytes; 24.0 MB 24.0 MB 24.0 MB 0.0 MB
T
echo "as described"
