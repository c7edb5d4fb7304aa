#!/usr/bin/env bash
# Spark 4.2.0: a JSON number in a TIMESTAMP column is multiplied by a million in 64 bits, without a check.
#
# Behaviour: a number counts seconds. A larger one, such as Debezium's default of microseconds for a TIMESTAMP of
# PostgreSQL, wraps around, also in ANSI mode and with mode FAILFAST: no error, no NULL, no corrupt record. Two of the
# values below are ordinary times in microseconds, the third is Debezium's 'infinity'; the results look like times.
# Output seen (pyspark 4.2.0, Java 17): the lines at the end. The script fails if they change.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyspark==4.2.0
PYSPARK_PYTHON="$d/v/bin/python" "$d/v/bin/python" - 2>"$d/log" <<'P' | tee "$d/out"
from pyspark.sql import SparkSession

settings = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
for number in (1733932800, 1733932800000000, 18446744075429551, 9223372036825200000):
    text = f"from_json('{{\"t\": {number}}}', 't TIMESTAMP', map('mode', 'FAILFAST'))"
    print(number, spark.sql(f"SELECT CAST({text}.t AS STRING)").collect()[0][0])
P
diff "$d/out" - <<'T'
1733932800 2024-12-11 16:00:00
1733932800000000 0032-06-16 05:08:22.148096
18446744075429551 1970-01-20 21:46:39.384
9223372036825200000 1969-01-23 16:29:52
T
echo "as described"
