#!/usr/bin/env bash
# Spark 4.2.0: CORR over a group of equal values ends the query, and so may one quiet sensor.
#
# Behaviour: ANSI mode is Spark 4's default. The correlation of values without any spread divides by zero, and the whole
# query fails with DIVIDE_BY_ZERO, also for all other groups; with ANSI mode off it is NULL, as in PostgreSQL. The
# related REGR_SLOPE and REGR_R2 give NULL for the same group in both modes.
# Output seen (pyspark 4.2.0, Java 17): the lines at the end. The script fails if they change.
set -euo pipefail
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
python3 -m venv "$d/v"
"$d/v/bin/pip" install --quiet pyspark==4.2.0
PYSPARK_PYTHON="$d/v/bin/python" "$d/v/bin/python" - 2>"$d/log" <<'P' | tee "$d/out"
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = "VALUES ('quiet', 1D, 2D), ('quiet', 1D, 2D), ('busy', 1D, 2D), ('busy', 3D, 5D) AS t(k, x, y)"
for ansi in ("true", "false"):
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    for call in ("CORR(x, y)", "REGR_SLOPE(y, x)", "REGR_R2(y, x)"):
        try:
            found = spark.sql(f"SELECT k, {call} FROM {rows} GROUP BY k ORDER BY k").collect()
            print(ansi, call, [tuple(row) for row in found])
        except PySparkException as error:
            print(ansi, call, error.getCondition())
P
diff "$d/out" - <<'T'
true CORR(x, y) DIVIDE_BY_ZERO
true REGR_SLOPE(y, x) [('busy', 1.5), ('quiet', None)]
true REGR_R2(y, x) [('busy', 1.0), ('quiet', None)]
false CORR(x, y) [('busy', 1.0), ('quiet', None)]
false REGR_SLOPE(y, x) [('busy', 1.5), ('quiet', None)]
false REGR_R2(y, x) [('busy', 1.0), ('quiet', None)]
T
echo "as described"
