#!/usr/bin/env bash
# ptars 0.0.25 (Protobuf to Arrow): a Timestamp before 1677 or after 2262 becomes another time, without an error.
#
# Behaviour: its default type for google.protobuf.Timestamp is timestamp[ns], whose least and greatest value stand for
# all times beyond: 9999-12-31T23:59:59Z, which many programs write as "no end", is read as 2262-04-11, and the year 1
# as 1677. With `timestamp_unit="us"` both are right. Output seen (ptars 0.0.25, protobuf 7.36.2, pyarrow 26.0.1, Python 3.11): see below.
# It matters to whoever compares such times, or computes what lies between them.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet ptars==0.0.25 protobuf==7.36.2 pyarrow==26.0.1
"$d/v/bin/python" - <<'P' | tee "$d/out"
import ptars
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

file = descriptor_pb2.FileDescriptorProto(name="lease.proto", syntax="proto3", dependency=[timestamp_pb2.DESCRIPTOR.name])
field = file.message_type.add(name="Lease").field.add(name="ends", number=1, type=11, label=1)
field.type_name = ".google.protobuf.Timestamp"
pool = descriptor_pool.Default()
pool.AddSerializedFile(file.SerializeToString())
kind = pool.FindMessageTypeByName("Lease")
for unit in ("ns", "us"):
    config = None if unit == "ns" else ptars.PtarsConfig(timestamp_unit=unit)
    reader = ptars.HandlerPool([kind.file], config).get_for_message(kind)
    for seconds in (-62135596800, 253402300799):
        lease = message_factory.GetMessageClass(kind)()
        lease.ends.seconds = seconds
        read = reader.list_to_record_batch([lease.SerializeToString()]).column("ends")
        print(f"{lease.ends.ToJsonString()}: {read.type} {read.cast('int64')[0]}")
P
diff "$d/out" - <<'T'
0001-01-01T00:00:00Z: timestamp[ns, tz=UTC] -9223372036854775808
9999-12-31T23:59:59Z: timestamp[ns, tz=UTC] 9223372036854775807
0001-01-01T00:00:00Z: timestamp[us, tz=UTC] -62135596800000000
9999-12-31T23:59:59Z: timestamp[us, tz=UTC] 253402300799000000
T
echo "as described"
