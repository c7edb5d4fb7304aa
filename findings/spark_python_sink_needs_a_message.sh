#!/usr/bin/env bash
# PySpark 4.2.0: write() of a Python data sink must return a message, also for a partition without rows.
#
# Behaviour: the docstrings of DataSourceArrowWriter.write and DataSourceStreamArrowWriter.write say that it returns a
# commit message, or None if there is none, and commit() says that a failed task's message is None. A write() that
# returns None for an empty partition, or for all, ends the job with DATA_SOURCE_TYPE_MISMATCH. So a sink works in tests
# in which every partition has rows, and fails after a filter or a repartition.
# Output seen: the lines at the end. The script fails if they change.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyspark==4.2.0 pyarrow==26.0.1 pandas==2.3.3
cat > "$d/sinks.py" <<'P'
from dataclasses import dataclass

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage


@dataclass
class Rows(WriterCommitMessage):
    count: int


class Writer(DataSourceArrowWriter):
    def __init__(self, always):
        self.always = always

    def write(self, iterator):
        count = sum(batch.num_rows for batch in iterator)
        return Rows(count) if count or self.always else None

    def commit(self, messages):
        with open(self.always or "/dev/null", "w") as out:
            out.write(str(sorted(message.count for message in messages)))


class Sink(DataSource):
    @classmethod
    def name(cls):
        return "sink"

    def writer(self, schema, overwrite):
        return Writer(self.options.get("always"))
P
cd "$d"
PYTHONPATH="$d" PYSPARK_PYTHON="$d/v/bin/python" "$d/v/bin/python" - 2>"$d/log" <<'P' | tee "$d/out"
import pathlib

from pyspark.sql import SparkSession
from sinks import Sink

print(*(" ".join(line.split()) for line in Sink.writer(Sink({}), None, False).__class__.__mro__[1].write.__doc__.splitlines() if "None" in line))
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.dataSource.register(Sink)
rows = spark.range(0, 4, 1, 2)
for what, given in (("rows in both partitions", rows), ("rows in one", rows.where("id > 1"))):
    for always in ("", "seen.txt"):
        writer = given.write.format("sink").mode("append")
        try:
            (writer.option("always", always) if always else writer).save()
            seen = pathlib.Path(always).read_text() if always else "written"
        except Exception as failed:
            seen = next(word for word in ("DATA_SOURCE_TYPE_MISMATCH", str(failed)) if word in str(failed))
        print(f"{what}, {'always a message' if always else 'None for no rows'}: {seen}")
P
diff "$d/out" - <<'T'
representing a commit message, or None if there is no commit message.
rows in both partitions, None for no rows: written
rows in both partitions, always a message: [2, 2]
rows in one, None for no rows: DATA_SOURCE_TYPE_MISMATCH
rows in one, always a message: [0, 2]
T
echo "as described"
