#!/usr/bin/env bash
# pyarrow 26.0.1: pyarrow.compute.binary_slice of an even number of values, with a start and no stop, fails.
#
# Behaviour: "If not given, slicing will stop at the end", says the documentation of `stop`. With 1 or 3 values it is
# so; with 2 or 4 there is the error "Negative buffer resize". With a stop beyond all ends, or with a start that counts
# from the end, all are right. Output seen (Python 3.11): see below. It matters to whoever removes a head of fixed size
# from values, as the schema id of Kafka records.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyarrow==26.0.1
"$d/v/bin/python" - <<'P' | tee "$d/out"
import pyarrow as pa
import pyarrow.compute as pc

for count in (1, 2, 3, 4):
    values = pa.array([b"abcd"] * count)
    for start, stop in ((2, None), (2, 1000), (-2, None)):
        try:
            print(count, start, stop, pc.binary_slice(values, start, stop).to_pylist())
        except pa.ArrowInvalid as error:
            print(count, start, stop, error)
P
diff "$d/out" - <<'T'
1 2 None [b'cd']
1 2 1000 [b'cd']
1 -2 None [b'cd']
2 2 None Negative buffer resize: -6
2 2 1000 [b'cd', b'cd']
2 -2 None [b'cd', b'cd']
3 2 None [b'cd', b'cd', b'cd']
3 2 1000 [b'cd', b'cd', b'cd']
3 -2 None [b'cd', b'cd', b'cd']
4 2 None Negative buffer resize: -12
4 2 1000 [b'cd', b'cd', b'cd', b'cd']
4 -2 None [b'cd', b'cd', b'cd', b'cd']
T
echo "as described"
