#!/usr/bin/env bash
# PySpark 4.2.0: a step of mapInArrow whose result goes to toArrow() waits 40 ms until its small input ends, over TCP.
#
# Behaviour: a step that only reads its input, one row, needs 40 ms for that, but not if its result goes to first(). Over
# Unix domain sockets (`spark.python.unix.domain.socket.enabled`, off by default) it needs 0 to 5 ms. 40 ms is the time
# for which Linux holds back an acknowledgement. It matters to whoever has many small jobs with steps of Python. Output seen (Python 3.11, Java 17, Linux): see below; Java is
# expected in JAVA_HOME or PATH.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyspark==4.2.0 pyarrow==26.0.1 pandas==2.3.3
cat > "$d/p.py" <<'P'
import sys
import time

import pyarrow as pa
from pyspark.sql import SparkSession

setting = "spark.python.unix.domain.socket.enabled"
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(setting, sys.argv[1]).getOrCreate()


def reads(batches):
    begin = time.perf_counter()
    for _ in batches:
        pass
    yield pa.record_batch([pa.array([time.perf_counter() - begin])], names=["seconds"])


def rows():
    return spark.range(0, 1, 1, 1).mapInArrow(reads, "seconds double")


for name, take in (("first()", lambda: rows().first().seconds), ("toArrow()", lambda: rows().toArrow()["seconds"][0].as_py())):
    median = sorted(take() for _ in range(15))[7] * 1000
    text = "about 40 ms" if 30 < median < 60 else "less than 15 ms" if median < 15 else f"{median:.0f} ms"
    print(f"{sys.argv[2]}, {name}: {text}")
P
export PYSPARK_PYTHON="$d/v/bin/python" SPARK_LOCAL_IP=127.0.0.1
for way in "false TCP" "true Unix domain socket"; do
  "$d/v/bin/python" "$d/p.py" "${way%% *}" "${way#* }" 2> "$d/log"
done | tee "$d/out"
diff "$d/out" - <<'T'
TCP, first(): less than 15 ms
TCP, toArrow(): about 40 ms
Unix domain socket, first(): less than 15 ms
Unix domain socket, toArrow(): less than 15 ms
T
echo "as described"
