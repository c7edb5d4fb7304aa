#!/usr/bin/env bash
# PySpark 4.2.0: a function of mapInArrow that returns without reading its input to the end costs its Python worker.
# Workers are kept from task to task (spark.python.worker.reuse, true by default). If the function takes only the first
# batch, even where there is no second one, the worker ends after the task, and every later task starts a new process
# and imports everything again. Nothing says so: no warning, no metric, and the results are right. Seen: ten tasks of a
# function that drains its input ran in one process, ten tasks of one that takes the first batch in ten.
set -euo pipefail
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet pyspark==4.2.0 pyarrow==26.0.1 pandas==2.3.3
cat > "$place/workers.py" <<'PYTHON'
import os

import pyarrow as pa
from pyspark.sql import SparkSession


def report() -> pa.RecordBatch:
    return pa.record_batch([pa.array([os.getpid()], pa.int64())], names=["worker"])


def drains(batches):
    for _ in batches:
        yield report()


def takes_the_first(batches):
    next(iter(batches))
    yield report()


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for function in (drains, takes_the_first):
    workers = set()
    for _ in range(10):
        rows = spark.range(0, 1, 1, 1).mapInArrow(function, "worker long").collect()
        workers |= {row.worker for row in rows}
    print(f"{function.__name__}: {len(workers)} workers for 10 tasks")
PYTHON
export PYSPARK_PYTHON="$place/venv/bin/python"
"$place/venv/bin/python" "$place/workers.py" > "$place/seen" 2> "$place/log" || { tail -20 "$place/log"; exit 1; }
cat "$place/seen"
grep -qx 'drains: 1 workers for 10 tasks' "$place/seen" || { echo "changed: a worker is not kept"; exit 1; }
grep -qx 'takes_the_first: 10 workers for 10 tasks' "$place/seen" || { echo "changed: the worker is kept"; exit 1; }
echo "as described"
