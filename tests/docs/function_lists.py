"""The functions of Spark in groups, and what rowtime does with them, by the examples of Spark's documentation."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import rowtime as rt
from rowtime.expr.monotonicity import NON_DETERMINISTIC
from tests.queries.spark_examples import Example, examples
from tests.queries.test_spark_examples import REFUSED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS: Final = {
    "math_funcs": "numbers", "bitwise_funcs": "bits", "string_funcs": "text", "datetime_funcs": "times and dates",
    "conditional_funcs": "conditions", "predicate_funcs": "comparisons", "conversion_funcs": "conversions",
    "array_funcs": "arrays", "map_funcs": "maps", "struct_funcs": "structs", "collection_funcs": "collections",
    "lambda_funcs": "functions with `->`", "json_funcs": "JSON", "csv_funcs": "CSV", "xml_funcs": "XML",
    "variant_funcs": "VARIANT", "url_funcs": "URLs", "hash_funcs": "hashes", "misc_funcs": "others",
    "vector_funcs": "vectors", "st_funcs": "places", "sketch_funcs": "sketches", "agg_funcs": "aggregates",
}  # fmt: skip
"""The names that Spark gives to groups, and ours."""


def lists(spark: SparkSession) -> str:
    """Return two tables: the functions that work, by group, and those that are refused, with the reason."""
    groups, works, refused = _groups(spark), defaultdict[str, list[str]](list), dict[str, str]()
    by_name = defaultdict[str, list[Example]](list)
    for example in examples(spark):
        by_name[example.function].append(example)
    for name, of_name in by_name.items():
        codes = [_codes(example) for example in of_name]
        if not all(codes):
            works[groups.get(name, "")].append(name)
        elif codes[0]:
            refused[name] = codes[0][0]
    lines = ["| functions of | names |", "| --- | --- |"]
    lines += [f"| {shown} | {_listed(works[group])} |" for group, shown in GROUPS.items() if works[group]]
    lines += ["", "| refused | reason |", "| --- | --- |"]
    lines += [
        f"| {_listed([name for name, of in refused.items() if of == code])} | {code}: {why} |"
        for code, why in REFUSED.items()
        if code in refused.values()
    ]
    return "\n".join(lines)


def _codes(example: Example) -> list[str]:
    """Return the codes with which ``check`` refuses an example; `test_aggregate_examples` runs those of aggregates."""
    if example.function.upper() in NON_DETERMINISTIC:
        return ["R111"]
    if example.source:
        return []
    text = f"CREATE STREAM one (v INT); SELECT STREAM {example.text} AS r FROM one"
    return [problem.code for problem in rt.check(text) if not problem.warns]


def _groups(spark: SparkSession) -> dict[str, str]:
    assert spark._jvm is not None
    infos = spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos()
    return {info.getName(): info.getGroup() for info in infos}


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names) if name[0].isalpha())
