"""Evaluates expressions in the Spark that runs it: ``python evaluated.py TEXTS RESULTS`` needs nothing but PySpark.

TEXTS is a JSON list of what follows SELECT; RESULTS gets a JSON object: each text with its type and value,
``error`` if a row with it fails, or ``refused`` if Spark does not accept it, as an unknown function.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

REFUSED, ERROR = "refused", "error"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.sql.codegen.wholeStage": "false",  # an expression that is evaluated once is not worth a compilation
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.log.level": "OFF",
}


def evaluated(spark: SparkSession, text: str) -> str:
    """Return the type and the value of an expression, with its source if it is an aggregate."""
    one, _, source = text.partition(" FROM VALUES ")
    inner = f"SELECT {one} AS r" + (f" FROM VALUES {source}" if source else "")
    found = _row(spark, f"SELECT concat(typeof(r), ' ', coalesce(CAST(r AS STRING), 'NULL')) FROM ({inner})")
    return _row(spark, f"SELECT concat('binary ', hex(r)) FROM ({inner})") if found.startswith("binary ") else found


def _row(spark: SparkSession, query: str) -> str:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        rows = spark._jsparkSession.sql(query)
    except (Py4JError, PySparkException):
        return REFUSED
    try:
        return str(rows.collectAsList().toString())[2:-2]
    except (Py4JError, PySparkException):
        return ERROR


def all_evaluated(spark: SparkSession, texts: Iterable[str]) -> dict[str, str]:
    """Return the results of expressions, each by itself: one that fails does not disturb another."""
    given = list(texts)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(given, pool.map(lambda text: evaluated(spark, text), given), strict=True))


def main() -> None:
    import py4j.java_gateway
    from py4j.protocol import get_return_value
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config(map=SETTINGS).getOrCreate()
    py4j.java_gateway.get_return_value = get_return_value  # in place of PySpark's, which describes each error
    texts = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    results = json.dumps(all_evaluated(spark, texts), ensure_ascii=False, indent=0)
    Path(sys.argv[2]).write_text(results, encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
