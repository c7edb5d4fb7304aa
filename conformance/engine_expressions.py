"""Random expressions, aggregates and windows of Spark SQL over the edge cases of all types.

Most of them have a translation (`rowtime.frames`). A few forms and types are drawn that have none, or that Spark
refuses: a translation that takes such an expression has to give Spark's answer too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa
from sqlglot.errors import SqlglotError

from conformance.edge_values import EDGES
from rowtime.core.errors import Refused
from rowtime.frames.kinds import arrow_of
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression

ROWS: Final = 40
COLUMNS: Final = {f"c{n}": kind for n, kind in enumerate(EDGES)}
Table = tuple[pa.Table, list[tuple[str, str]]]
"""Rows with their columns' types; the first column, ``n``, numbers the rows."""

_WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
_DECIMALS: Final = tuple(kind for kind in EDGES if kind.startswith("decimal"))
_OF: Final[Mapping[str, Sequence[str]]] = {
    "int": _WHOLE, "num": (*_WHOLE, "double", *_DECIMALS), "flt": ("float",), "bool": ("boolean",),
    "text": ("string",), "date": ("date",), "ts": ("timestamp",), "time": ("timestamp", "timestamp_ntz"),
    "bin": ("binary",), "any": tuple(EDGES), "ints": ("array<int>",), "texts": ("array<string>",),
    "array": tuple(kind for kind in EDGES if kind.startswith("array")), "map": ("map<string,int>",),
    "lists": ("map<int,array<string>>",), "struct": ("struct<x: int, y: string>",),
    "nested": ("struct<s: struct<d: double, t: timestamp>, l: array<int>>",),
}  # fmt: skip
_LITERALS: Final[Mapping[str, Sequence[str]]] = {
    "int": ("0", "1", "-1", "2", "127", "2147483647", "-2147483648", "9223372036854775807", "3L", "7Y", "-128Y",
            "32767S", "(-1)", "00", "CAST(NULL AS INT)", "CAST(5 AS TINYINT)"),
    "num": ("0", "1", "-1", "7", "2147483647", "9223372036854775807L", "0.1", "2.50", "-3.5", "3000000000", "0.0",
            "1e3", "1.5D", "2BD", "-0.0D", "99999999999999999999", "0.000000000000000000000001",
            "CAST('NaN' AS DOUBLE)",
            "CAST(0.5 AS DOUBLE)", "-0.00", "1.0"),
    "flt": ("1.5F", "CAST(1 AS FLOAT)", "0.1", "2", "0.5D", "-0.0F"),
    "bool": ("TRUE", "FALSE", "NULL"),
    "text": ("''", "'a'", "'10'", "'é'", "'%'", "' '", "'a\\'b'", "'\\\\'", "' 1 '", "NULL", "'😀'", "'1e3'"),
    "date": ("DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '9999-12-31'", "DATE '1582-10-10'",
             "CAST(NULL AS DATE)", "DATE '2024'"),
    "ts": ("TIMESTAMP '2024-02-29 13:07:05.000001'", "TIMESTAMP '9999-12-31 23:59:59'", "TIMESTAMP '0001-01-01'",
           "CAST('2024-03-31 02:30:00' AS TIMESTAMP)", "TIMESTAMP '2024-02-29 13:07:05+02:00'"),
    "time": ("TIMESTAMP '1969-12-31 23:59:59.999999'", "TIMESTAMP_NTZ '2024-02-29 13:07:05'",
             "CAST('1582-10-10 00:00:00' AS TIMESTAMP_NTZ)"),
    "bin": ("X'00FF'", "X''", "CAST('é' AS BINARY)"),
    "map": ("map('a', 1)",),
    "any": ("NULL", "1", "'1'", "1.5"),
}  # fmt: skip
_PATTERNS: Final = ("yyyy", "y", "yy", "yyyyy", "YYYY", "MM", "M", "dd", "d", "HH", "HHHH", "hh", "mm", "ss", "ssss",
             "SSS", "-", "/", ":", " ", ".", "_", "%", "''T''", "''''", "[", "]", "{", "E", "G", "ddd")  # fmt: skip
_PARTS: Final = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "WEEK", "DOW", "YEAROFWEEK")
_UNITS: Final = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR",
                 "DECADE", "hour", "mon")  # fmt: skip
_INTERVALS: Final = (
    "INTERVAL '10' SECOND", "INTERVAL '-1' DAY", "INTERVAL 3 MINUTES", "INTERVAL '0.5' SECOND", "INTERVAL '7' DAY",
    "INTERVAL '1.000001' SECOND", "INTERVAL '-0.1' SECOND", "INTERVAL '1' HOUR", "INTERVAL 2 WEEKS",
    "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '1' MONTH", "INTERVAL '-2' YEAR", "INTERVAL '1-2' YEAR TO MONTH",
    "INTERVAL '106751991' DAY", "INTERVAL '5' MICROSECOND", "INTERVAL '100' MILLISECOND",
    "INTERVAL '25:00' HOUR TO MINUTE",
)  # fmt: skip
_TYPES: Final = (
    *_WHOLE, "FLOAT", "DOUBLE", "STRING", "BOOLEAN", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "DECIMAL(3, 1)",
    "DECIMAL(10, 2)", "DECIMAL(20, 0)", "DECIMAL(38, 0)", "DECIMAL(38, 10)", "DECIMAL(38, 18)", "DECIMAL(38, 38)",
    "DECIMAL", "INTERVAL DAY TO SECOND", "INTERVAL YEAR TO MONTH", "ARRAY<INT>", "ARRAY<STRING>", "MAP<STRING, INT>",
    "STRUCT<a: INT, b: STRING>", "STRUCT<a: BIGINT, b: STRING>", "VARCHAR(3)", "CHAR(4)", "LONG",
)  # fmt: skip
_TEXT: Final = next(name for name, kind in COLUMNS.items() if kind == "string")
_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "part": _PARTS, "unit": _UNITS, "interval": _INTERVALS, "type": _TYPES,
    "small": ("1", "2", "3", "7", "60", "1000", "3600000000L", "9223372036854775807L"),
    "place": ("1", "2", "3", "0", "-1", "100"),
    "like": ("'a%'", "'_'", "'%'", "''", "'%b'", "'a_b'", "'%é%'", "'_%_'", "'\\\\%'", "'a\\\\_b'", "'😀'", "'%\\n%'"),
    "regex": ("'a'", "'[ab]+'", "'^a'", "'b$'", r"'\\d+'", r"'\\s'", "'.'", "'(a|é)'", r"'\\|'", "'[^a-z]'", "'(?i)A'",
              "'a*'", "' '"),
    "places": ("0", "1", "2", "5", "9"),
    "whole": _WHOLE,
    "json": ("""'{"a": 1}'""", """'{"b":{"a":"x"},"a":1.5}'""", """'{"a":null}'""", "'[1]'", "'{'", _TEXT, _TEXT),
    "sign": ("=", "<>", "<", "<=", ">", ">=", "<=>", "!=", "=="),
}  # fmt: skip
"""Words that are put into a form as they are."""

_FORMS: Final[Mapping[str, Sequence[str]]] = {
    "int": (
        "{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} DIV {int}", "{int} % {int}", "- {int}", "abs({int})",
        "pmod({int}, {small})", "{int} + 1", "1 - {int}", "{int} * 2", "CAST({num} AS INT)", "CAST({num} AS BIGINT)",
        "CAST({int} AS TINYINT)", "CAST({int} AS SMALLINT)", "coalesce({int}, {int})", "nullif({int}, {int})",
        "CASE WHEN {bool} THEN {int} WHEN {bool} THEN {int} ELSE {int} END", "if({bool}, {int}, {int})",
        "greatest({int}, {int})", "least({int}, {int}, {int})", "length({text})", "hour({time})", "minute({time})",
        "second({time})", "year({time})", "month({date})", "day({time})", "EXTRACT({part} FROM {time})",
        "EXTRACT({part} FROM {date})", "unix_micros({ts})", "size({ints})", "cardinality({texts})", "{struct}.x",
        "struct({int} AS x, {text} AS y).x", "named_struct('x', {int}, 'z', {num}).x", "size({array})",
        "floor({num})", "ceil({num})", "CASE {int} WHEN {int} THEN {int} END", "mod({int}, {int})",
        "ifnull({int}, {int})",
        "nvl({int}, 0)", "get(array({small}), CAST(pmod({int}, 1L) AS INT))", "date_part('{part}', {time})",
        "year({date})", "dayofmonth({date})", "char_length({text})", "{int}", "instr({text}, 'a')",
        "locate({text}, {text})", "TRY_CAST({text} AS INT)", "CAST({text} AS {whole})", "TRY_CAST({int} AS TINYINT)",
        "dayofweek({date})", "dayofyear({time})", "weekofyear({date})", "weekday({date})", "quarter({time})",
        "datediff({date}, {date})", "unix_millis({ts})", "unix_seconds({ts})", "unix_timestamp({ts})",
        "timestampdiff({unit}, {ts}, {ts})", "{ints}[0]", "element_at({ints}, {place})", "{ints}[{int}]",
        "map('a', {int}, 'b', 2)['a']", "{map}['a']", "element_at({map}, 'a')", "round({int})",
        "from_json({json}, 'a INT').a",
    ),
    "num": (
        "{num} + {num}", "{num} - {num}", "{num} * {num}", "{num} / {num}", "- {num}", "abs({num})", "{num} * 0.5",
        "positive({num})", "{num} / 3", "1.5 - {num}", "CAST({num} AS DOUBLE)", "CAST({num} AS DECIMAL(20, 2))",
        "floor({num})", "CAST({num} AS DECIMAL(38, 10))", "coalesce({num}, {num})", "nullif({num}, {num})",
        "least({num}, {num})", "CASE WHEN {bool} THEN {num} ELSE {num} END", "if({bool}, {num}, 0)",
        "greatest({num}, {num}, {num})", "{int}",
        "{num} % {num}", "CAST({num} AS DECIMAL(38, 0))", "CAST({num} AS DECIMAL(38, 18))", "{nested}.s.d",
        "CASE {num} WHEN {num} THEN {num} ELSE {num} END", "CAST({num} AS DECIMAL(10, 2))",
        "CAST({int} AS DOUBLE)", "ceil({num})", "CAST({num} AS {type})", "round({num}, {places})", "round({num})",
        "sqrt({num})", "sign({num})", "power({num}, 2)", "CAST({text} AS DOUBLE)", "TRY_CAST({text} AS DOUBLE)",
        "from_json({json}, 'a DOUBLE, b STRING').a", "CAST({num} AS DECIMAL(10, 2))", "{num} / 7",
    ),
    "flt": ("coalesce({flt}, {flt})", "if({bool}, {flt}, {flt})", "greatest({flt}, {flt})", "least({flt}, {flt})",
            "CASE WHEN {bool} THEN {flt} END", "nullif({flt}, {flt})", "abs({flt})", "- {flt}", "{flt} + {num}",
            "CAST({num} AS FLOAT)", "positive({flt})"),
    "bool": (
        *["{num} {sign} {num}"] * 7, *["{int} {sign} {int}"] * 5, *["{text} {sign} {text}"] * 4, "{flt} {sign} {flt}",
        *["{time} {sign} {time}"] * 3, "{date} {sign} {date}", "{date} {sign} {time}", "{flt} {sign} {num}",
        "{num} BETWEEN {num} AND {num}", "{num} NOT BETWEEN {num} AND {num}", "{num} IN ({num}, {num})",
        "{text} NOT IN ({text}, 'b')", "{int} IN ({int}, NULL, 3)", "{text} BETWEEN {text} AND {text}",
        "{time} BETWEEN {time} AND {time}", "{any} IS NULL", "{any} IS NOT NULL", "{bool} AND {bool}",
        "{bool} AND {bool} AND {bool}", "{bool} OR {bool}", "NOT {bool}", "{bool} IS TRUE", "{bool} IS NOT FALSE",
        "{bool} IS UNKNOWN", "{bool} = {bool}", "{text} LIKE {like}", "{text} NOT LIKE {like}",
        "startswith({text}, {text})",
        "contains({text}, {text})", "endswith({text}, {text})", "coalesce({bool}, {bool})", "{bool} <=> {bool}",
        "CASE WHEN {bool} THEN {bool} ELSE {bool} END", "if({bool}, {bool}, {bool})", "nullif({bool}, {bool})",
        "{any} IS DISTINCT FROM {any}", "greatest({bool}, {bool})", "{ts} IN ({ts}, {time})", "{num} {sign} 0",
        "{date} IN ({date}, DATE '2024-02-29')", "{any} {sign} {any}", "{text} RLIKE {regex}",
        "array_contains({texts}, {text})", "array_contains({ints}, {int})", "CAST({text} AS BOOLEAN)",
    ),
    "text": (
        "concat({text}, {text})", "{text} || 'x'", "substring({text}, 2, 1)", "substring({text}, {place}, {place})",
        "trim({text})", "substr({text}, {place})", "trim(BOTH FROM {text})", "rtrim({text})", "substring({text}, 1)",
        "replace({text}, 'a', {text})", "ltrim({text})", "CAST({int} AS STRING)", "coalesce({text}, {text})",
        "nullif({text}, {text})", "CASE WHEN {bool} THEN {text} END", "date_format({time}, '{pattern}')",
        "date_format({time}, 'yyyy-MM-dd')", "date_format({time}, 'HH:mm:ss')", "array_join({texts}, ',')",
        "greatest({text}, {text})", "{struct}.y", "if({bool}, {text}, {text})", "replace({text}, {text}, {text})",
        "CAST({num} AS STRING)", "least({text}, {text})", "{text} || {text} || {text}",
        "CASE {text} WHEN {text} THEN {text} ELSE {text} END",
        "upper({text})", "lower({text})", "left({text}, 2)", "right({text}, {place})", "lpad({text}, 3, '*')",
        "rpad({text}, 5, 'é😀')", "concat_ws('-', {text}, {text})", "split_part({text}, ' ', {place})",
        "split({text}, {regex})[0]", "sha2({text}, 256)", "sha1({text})", "md5({text})",
        "regexp_extract({text}, {regex}, 0)",
        r"regexp_extract({text}, '([a-z]+)(\\d*)', 1)", "regexp_replace({text}, {regex}, 'x')",
        "regexp_replace({text}, '(a)|b', '[$1]')", "from_unixtime({int})", "get_json_object({json}, '$.a')",
        "get_json_object({json}, '$.b.a')", "to_json({struct})", "to_json(struct({int} AS a, {text} AS b))",
        "element_at({texts}, 1)", "concat({text}, {int})",
        "translate({text}, 'aTx%', 'Atyé')", "translate({text}, 'Aaé', 'ab')", "translate({text}, 'ab', 'BA')",
    ),
    "date": ("CAST({time} AS DATE)", "coalesce({date}, {date})", "greatest({date}, {date})", "nullif({date}, {date})",
             "if({bool}, {date}, {date})", "CASE WHEN {bool} THEN {date} END", "to_date({time})", "date({time})",
             "date_add({date}, {place})", "date_sub({date}, {int})", "TRY_CAST({text} AS DATE)", "to_date({text})",
             "to_date({text}, 'yyyy-MM-dd')"),
    "ts": (
        "{ts} + {interval}", "{ts} - {interval}", "DATE_TRUNC('{unit}', {ts})", "CAST({date} AS TIMESTAMP)",
        "coalesce({ts}, {ts})", "timestamp_micros({int})", "least({ts}, {ts})", "if({bool}, {ts}, {ts})",
        "{nested}.s.t",
        "timestamp_micros(unix_micros({ts}) + {int})", "CAST({time} AS TIMESTAMP)", "timestamp_seconds({int})",
        "timestamp_millis({int})", "CAST({text} AS TIMESTAMP)", "TRY_CAST({text} AS TIMESTAMP)", "to_timestamp({text})",
        "to_timestamp({text}, 'yyyy-MM-dd HH:mm:ss')", "to_timestamp({date})",
    ),
    "time": ("{ts}", "{time} + {interval}", "{interval} + {time}", "DATE_TRUNC('{unit}', {time})",
             "nullif({time}, {time})",
             "CAST({date} AS TIMESTAMP_NTZ)", "greatest({time}, {time})", "CASE WHEN {bool} THEN {time} END"),
    "bin": ("coalesce({bin}, {bin})", "if({bool}, {bin}, {bin})", "concat({bin}, {bin})"),
    "ints": ("slice({ints}, {place}, {place})", "sort_array({ints})", "coalesce({ints}, {ints})", "array_sort({ints})",
             "if({bool}, {ints}, {ints})", "{nested}.l", "sort_array({ints}, FALSE)",
             "transform({ints}, x -> x + 1)", "filter({ints}, x -> x > {small})", "array_distinct({ints})",
             "slice(sort_array({ints}, FALSE), 1, 2)", "sequence(pmod({int}, 7), pmod({int}, 7) + 7)"),
    "texts": ("transform({texts}, x -> upper(x))", "filter({texts}, x -> x <> 'a')", "array_distinct({texts})",
              "split({text}, 'a')", "slice({texts}, 1, 1)", "sort_array({texts}, FALSE)", "array({text}, {text})",
              "sort_array({texts})"),
    "array": ("slice({array}, {place}, {place})", "sort_array({array})", "sort_array({array}, FALSE)",
              "array_sort({array})",
              "coalesce({array}, {array})", "slice(sort_array({array}, FALSE), 1, 2)"),
    "map": ("coalesce({map}, {map})", "if({bool}, {map}, {map})"),
    "struct": ("if({bool}, {struct}, {struct})", "coalesce({struct}, {struct})", "struct({int} AS x, {text} AS y)",
               "CAST({struct} AS STRUCT<a: INT, b: STRING>)"),
    "nested": ("if({bool}, {nested}, {nested})", "coalesce({nested}, {nested})"),
    "any": ("map_entries({map})",
            "coalesce({int}, 1)", "{text}", "{num}", "struct({any} AS a, {int} AS b)", "named_struct('a', {any})",
            "{bool}",
            "{date}", "{time}", "if({bool}, {any}, {any})", "coalesce({any}, {any})", "CAST({any} AS {type})"),
}  # fmt: skip
_WITHOUT: Final[Mapping[str, Sequence[str]]] = {
    "int": ("bround({num})", "{lists}[1]", "try_add({int}, {int})", "shiftleft({int}, 3)", "{int} & {int}",
            "try_divide({int}, {int})", "bit_length({text})", "TRY_CAST({num} AS INT)", "months_between({ts}, {ts})"),
    "num": ("try_divide({num}, {num})", "pow({num}, 3)", "CAST({bool} AS DOUBLE)", "TRY_CAST({any} AS DOUBLE)",
            "exp({num})", "CAST({ts} AS DOUBLE)", "round({num}, -1)", "ln({num})"),
    "bool": ("{text} ILIKE 'A%'", "{bin} = {bin}", "CAST({any} AS BOOLEAN)",
             "exists({ints}, x -> x > 0)", "{ts} - {ts} > INTERVAL '1' DAY", "isnan({num})",
             "{text} LIKE 'a!%' ESCAPE '!'",
             "TRY_CAST({text} AS BOOLEAN)", "({int}, {int}) = (1, 2)"),
    "text": ("initcap({text})", "reverse({text})", "TRY_CAST({any} AS STRING)", "hex({text})",
             "CAST({any} AS STRING)", "trim(BOTH 'a' FROM {text})", "overlay({text} PLACING 'x' FROM 1)",
             "split({text}, 'a', 2)[0]", "regexp_replace({text}, 'a*', 'x')", "to_json({any})"),
    "date": ("{date} + {interval}", "CAST({text} AS DATE)", "last_day({date})", "{date} + 1", "add_months({date}, 1)",
             "trunc({date}, 'MM')"),
    "ts": ("{ts} + make_dt_interval({int})", "{date} + {interval}", "TRY_CAST({any} AS TIMESTAMP)",
           "from_utc_timestamp({ts}, 'America/St_Johns')", "{interval} + {ts}"),
    "any": ("{ts} - {ts}", "{interval} * {int}", "{date} - {date}", "{map}", "array({any})", "map_keys({map})",
            "{lists}",
            "{interval} + {interval}", "TRY_CAST({any} AS {type})", "transform({ints}, x -> x + 1)", "{nested}.s"),
}  # fmt: skip
"""Forms that mostly have no translation."""
_TOP: Final = ("int", "int", "num", "num", "num", "num", "bool", "bool", "bool", "bool", "bool", "text", "text", "date",
               "ts", "ts", "time", "ints", "texts", "array", "struct", "nested", "flt", "any", "any", "bin",
               "map")  # fmt: skip
_ODD: Final = 0.04
"""How many parts of a form have another type than it wants, or no translation."""
AGGREGATES: Final = (
    *(f"{name}({{{of}}})" for name in ("min", "max", "count") for of in ("num", "text", "time", "date", "bool", "any")),
    "sum({int})", "sum({num})", "sum({num})", "sum({col:num})", "count(*)", "count(DISTINCT {num})",
    "count(DISTINCT {text})", "count(DISTINCT {time})", "count_if({bool})", "max_by({any}, n)",
    "min_by({num}, n)",
    "max_by({text}, struct(coalesce({col:ts}, TIMESTAMP '1970-01-01') AS t, n AS n))", "max({flt})", "min({flt})",
    "count(*) FILTER (WHERE {bool})", "max({num}) FILTER (WHERE {bool})", "min({text}) FILTER (WHERE {bool})",
    "sum({int}) FILTER (WHERE {bool})", "count({any}) FILTER (WHERE {bool})", "count(DISTINCT {any})",
    "sum({int}) + count(*)", "max({int}) - min({int})", "coalesce(sum({num}), 0)", "max({num}) > 2",
    "sum(DISTINCT {int})",
    "sum({int}) / count({int})", "sum(CASE WHEN {bool} THEN {int} ELSE 0 END)", "min(struct({int} AS a, {text} AS b))",
    "avg({num})", "stddev({num})", "first({any})", "min({num}) <=> max({num})", "sum({flt})", "count({any}, {any})",
    *(
        f"transform(array_sort(collect_list(CASE WHEN {{bool}} THEN struct(n AS p, {{col:{of}}} AS v) END)), x -> x.v)"
        for of in ("text", "time", "nested", "array", "struct")
    ),
    "transform(array_sort(collect_list(CASE WHEN {num} > 0 THEN struct(n AS p, {num} AS v) END)), x -> x.v)",
    *(f"{name}({{num}})" for name in ("std", "stddev_samp", "stddev_pop", "variance", "var_pop", "median", "mean")),
    *(f"{name}({{int}})" for name in ("stddev", "var_samp", "avg", "bit_and", "bit_or", "bit_xor")),
    *(f"{name}({{bool}})" for name in ("bool_and", "bool_or", "every", "some")),
    "corr({col:num}, {num})", "corr({flt}, {flt})", "avg({col:num})",
    "regr_count({num}, {int})", "percentile({num}, 0.25)", "percentile({int}, 0.5, n)",
    "mode({text}, true)", "percentile_cont(0.75) WITHIN GROUP (ORDER BY {num} DESC)", "mode({time}, true)",
    "mode({int}, true)",
    "count(DISTINCT {int}, {text})", "sum(DISTINCT {col:num})", "median({col:int}) FILTER (WHERE {bool})",
    "var_pop({col:flt}) FILTER (WHERE {bool})", "avg({col:int}) FILTER (WHERE {bool})",
    "bool_or({col:bool}) FILTER (WHERE {bool})",
)  # fmt: skip
_FRAMES: Final = (
    "", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "RANGE BETWEEN 2 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)  # fmt: skip
_WINDOWS: Final = (
    *(f"{call} OVER ({{by}}ORDER BY {{terms}}n {{frame}})" for call in (
        "sum({col:num})", "count(*)", "min({col:any})", "max({col:num})", "count({col:any})", "max({col:text})",
        "min({col:time})", "first_value({col:any})", "avg({col:num})", "count_if({col:bool})")),
    *(f"{call} OVER ({{by}}ORDER BY {{terms}}n)" for call in (
        "lag({col:any}, {steps})", "lead({any})", "lag({col:int}, 1, {int})", "lead({num}, 2)", "row_number()",
        "dense_rank()", "lag({text}, 1, 'x')", "rank()")),
    "sum({col:int}) OVER ({by2})", "max({text}) OVER ({by2})", "count({bool}) OVER ({by2})",
    "explode(sequence(pmod({int}, 7L), pmod({int}, 7L) + 7, {small}))", "explode(sequence({small}, 5L))",
    *(f"explode(sequence(unix_micros({name}) - pmod(unix_micros({name}), 7L), unix_micros({name}), 3L))"
      for name, kind in COLUMNS.items() if kind == "timestamp"),
)  # fmt: skip


def drawn(seed: str, count: int) -> tuple[pa.Table, list[tuple[str, str]], list[str]]:
    """Return rows of edge cases, the types of their columns, and expressions over them."""
    chance = Random(seed)
    rows = {name: [chance.choice(EDGES[kind]) for _ in range(ROWS)] for name, kind in COLUMNS.items()}
    texts = (_expression(chance, chance.choice(_TOP), chance.choice((1, 1, 2, 2, 3, 4))) for _ in range(count))
    return *_table({"n": ("bigint", range(ROWS))}, rows), _as_rowtime_writes_them(chance, texts)


def drawn_aggregates(seed: str, count: int) -> tuple[pa.Table, list[tuple[str, str]], list[str]]:
    """Return rows in groups ``g``, the types of their columns, and aggregates.

    The groups: one row; equal values; NULLs; greatest, least values; values of one sign; any values.
    """
    chance = Random(seed)
    groups = [0, *[1] * 3, *[2] * 2, *[3] * 2, *[4] * 2, *[5] * 4, *[6] * 6, *[7] * 6]
    rows = {name: [*_of_groups(chance, EDGES[kind])] for name, kind in COLUMNS.items()}
    texts = (_filled(chance, chance.choice(AGGREGATES), chance.choice((0, 0, 1, 1, 2))) for _ in range(count))
    first = {"n": ("bigint", range(len(groups))), "g": ("int", groups)}
    return *_table(first, rows), _as_rowtime_writes_them(chance, texts)


def drawn_windows(seed: str, count: int) -> tuple[pa.Table, list[tuple[str, str]], list[str]]:
    """Return rows in groups ``g``, the types of their columns, and windows and series over them."""
    chance = Random(seed)
    table, kinds, _ = drawn_aggregates(seed, 0)
    return table, kinds, _as_rowtime_writes_them(chance, (_window(chance) for _ in range(count)))


def _as_rowtime_writes_them(chance: Random, texts: Iterable[str]) -> list[str]:
    """Return expressions, half of them as rowtime writes those of a script for Spark."""
    return [*dict.fromkeys(_rewritten(text) if chance.random() < 0.5 else text for text in texts)]


def _rewritten(text: str) -> str:
    try:
        return to_spark(parse_expression(text))
    except (Refused, SqlglotError, ValueError):  # it is no expression of rowtime
        return text


def _of_groups(chance: Random, values: Sequence[Any]) -> list[Any]:
    known = [value for value in values if value is not None]
    one, few = chance.choice(values), chance.sample(known, min(2, len(known)))
    edges = sorted(known) if not any(isinstance(value, dict | list) for value in known) else known
    return [
        chance.choice(values), *[one] * 3, *[None] * 2, *[edges[-1]] * 2, *[edges[0]] * 2,
        *(chance.choice(few) for _ in range(4)), *(chance.choice(known) for _ in range(6)),
        *(chance.choice(values) for _ in range(6)),
    ]  # fmt: skip


def _table(first: Mapping[str, tuple[str, Sequence[int]]], rows: Mapping[str, Sequence[Any]]) -> Table:
    kinds = [*((name, kind) for name, (kind, _) in first.items()), *COLUMNS.items()]
    values = {**{name: of for name, (_, of) in first.items()}, **rows}
    return pa.table({name: pa.array(values[name], arrow_of(kind)) for name, kind in kinds}), kinds


def _window(chance: Random) -> str:
    text = chance.choice(_WINDOWS)
    groups = ("g", "{col:text}", "{col:num}, g", "{col:array}, {col:bin}")
    by = chance.choice(("", *(f"PARTITION BY {of} " for of in groups)))
    terms = [f"{{col:{kind}}} {chance.choice(('', 'DESC ', 'NULLS LAST ', 'DESC NULLS FIRST '))}, "
             for kind in chance.choice(((), (), ("num",), ("text",), ("time", "bool"), ("flt",)))]  # fmt: skip
    text = text.replace("{by}", by).replace("{by2}", by).replace("{terms}", "".join(terms))
    text = text.replace("{frame}", chance.choice(_FRAMES)).replace("{steps}", str(chance.randint(0, 3)))
    return _filled(chance, text, 1)


def _expression(chance: Random, kind: str, depth: int) -> str:
    if chance.random() < _ODD:
        kind = chance.choice((kind, "any", chance.choice([*_FORMS])))
    if depth and kind in _FORMS:
        forms = _WITHOUT[kind] if kind in _WITHOUT and chance.random() < _ODD else _FORMS[kind]
        return f"({_filled(chance, chance.choice(forms), depth - 1)})"
    if kind in _LITERALS and chance.random() < 0.25:
        return chance.choice(_LITERALS[kind])
    return _column(chance, kind)


def _column(chance: Random, kind: str) -> str:
    return chance.choice([name for name, of in COLUMNS.items() if of in _OF[kind]])


def _filled(chance: Random, form: str, depth: int) -> str:
    if "{pattern}" in form:
        form = form.replace("{pattern}", "".join(chance.choice(_PATTERNS) for _ in range(chance.randint(1, 5))))
    first, *parts = form.split("{")
    text = first
    for part in parts:
        word, closed, rest = part.partition("}")
        if word in _WORDS:
            text += chance.choice(_WORDS[word]) + rest
        elif word.startswith("col:"):
            text += _column(chance, word.removeprefix("col:")) + rest
        else:
            text += (_expression(chance, word, depth) if closed and word in _OF else "{" + word + closed) + rest
    return text
