#!/usr/bin/env bash
# ptars 0.0.25 (Arrow to Protobuf): -0.0 in a field without presence is not written, so readers get 0.0.
#
# Behaviour: a field of proto3 without `optional` is left out if it has its zero value. Google's package takes -0.0 for
# another value, and writes it. ptars leaves it out. With `optional` both write it. Output seen (ptars 0.0.25, protobuf
# 7.36.2, pyarrow 26.0.1, Python 3.11): see below. It matters to whoever divides by such a value, or compares rows before
# and after by their bits.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet ptars==0.0.25 protobuf==7.36.2 pyarrow==26.0.1
"$d/v/bin/python" - <<'P' | tee "$d/out"
import ptars
import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

file = descriptor_pb2.FileDescriptorProto(name="point.proto", syntax="proto3")
message = file.message_type.add(name="Point")
message.field.add(name="plain", number=1, type=1, label=1)
message.field.add(name="shown", number=2, type=1, label=1, proto3_optional=True, oneof_index=0)
message.oneof_decl.add(name="_shown")
pool = descriptor_pool.DescriptorPool()
pool.AddSerializedFile(file.SerializeToString())
kind = pool.FindMessageTypeByName("Point")
writer = ptars.HandlerPool([kind.file]).get_for_message(kind)
Point = message_factory.GetMessageClass(kind)
for name in ("plain", "shown"):
    theirs = Point(**{name: -0.0}).SerializeToString()
    columns = {"plain": pa.array([0.0]), "shown": pa.array([None], pa.float64()), name: pa.array([-0.0])}
    written = writer.record_batch_to_array(pa.RecordBatch.from_pydict(columns))[0].as_py()
    print(f"{name}: protobuf {theirs.hex()}, ptars {written.hex() or 'nothing'}")
P
diff "$d/out" - <<'T'
plain: protobuf 090000000000000080, ptars nothing
shown: protobuf 110000000000000080, ptars 110000000000000080
T
echo "as described"
