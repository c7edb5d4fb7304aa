#!/usr/bin/env bash
# ptars 0.0.25 (Protobuf to Arrow): a record with two members of a oneof gives values in both columns, without an error.
#
# Behaviour: a record may contain several members of one oneof, as when two serialized messages are joined; by the
# Protobuf specification the last one counts, and Google's package shows only that one. ptars shows all, in any order,
# so its rows do not say which one counts. Output seen (ptars 0.0.25, protobuf 7.36.2, pyarrow 26.0.1, Python 3.11): see
# below. It matters to whoever takes the column with a value as the kind of the record, or counts values by column.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet ptars==0.0.25 protobuf==7.36.2 pyarrow==26.0.1
"$d/v/bin/python" - <<'P' | tee "$d/out"
import ptars
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

file = descriptor_pb2.FileDescriptorProto(name="payment.proto", syntax="proto3")
message = file.message_type.add(name="Payment")
message.oneof_decl.add(name="means")
message.field.add(name="card", number=1, type=9, label=1, oneof_index=0)
message.field.add(name="cents", number=2, type=5, label=1, oneof_index=0)
pool = descriptor_pool.Default()
pool.AddSerializedFile(file.SerializeToString())
kind = pool.FindMessageTypeByName("Payment")
Payment = message_factory.GetMessageClass(kind)
reader = ptars.HandlerPool([kind.file]).get_for_message(kind)
card, cents = Payment(card="x").SerializeToString(), Payment(cents=5).SerializeToString()
for record in (card, cents, card + cents, cents + card):
    shown = {field.name: value for field, value in Payment.FromString(record).ListFields()}
    print(f"{record.hex()}: protobuf {shown}, ptars {reader.list_to_record_batch([record]).to_pylist()[0]}")
P
diff "$d/out" - <<'T'
0a0178: protobuf {'card': 'x'}, ptars {'card': 'x', 'cents': None}
1005: protobuf {'cents': 5}, ptars {'card': None, 'cents': 5}
0a01781005: protobuf {'cents': 5}, ptars {'card': 'x', 'cents': 5}
10050a0178: protobuf {'card': 'x'}, ptars {'card': 'x', 'cents': 5}
T
echo "as described"
