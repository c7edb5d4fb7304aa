"""Calls and operators of Spark are passed to Spark as they were written (semantics 5)."""

from __future__ import annotations

import pytest

from rowtime.expr.aggregates import decompose, ordered_text
from rowtime.expr.many_rows import is_aggregate
from rowtime.sql.calls import KNOWN
from rowtime.sql.generate import literal, to_spark
from rowtime.sql.script import parse_expression

AS_WRITTEN = r"""
to_char(t, 'yyyy-MM')
to_char(v, '000')
instr(s, 'b', 1, 2)
percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC)
percentile_disc(0.25) WITHIN GROUP (ORDER BY v)
listagg(s)
listagg(DISTINCT s, ', ') WITHIN GROUP (ORDER BY s DESC)
string_agg(s) WITHIN GROUP (ORDER BY s)
mode() WITHIN GROUP (ORDER BY v)
max_by(s, v, 2)
min_by(s, v)
to_date('2024-01-31', 'yyyy-MM-dd HH:mm:ss')
to_date(s)
parse_json('[1]')
nvl(v, 0)
ifnull(v, 0)
nvl2(v, 1, 2)
date_format(t, 'yyyy-MM-dd HH:mm:ss.SSS EEE')
date_add(t, 3)
date_add(MONTH, 3, t)
date_sub(t, 3)
dateadd(DAY, 3, t)
datediff(WEEK, t, u)
datediff(t, u)
timestampdiff(HOUR, t, u)
timestampadd(MONTH, -1, t)
date_trunc('WEEK', t)
date_trunc('Y', t)
date_trunc(s, t)
trunc(t, 'MON')
trunc(v, 1)
year(t)
dayofweek(t)
unix_date(t)
from_unixtime(0)
from_utc_timestamp(t, 'Asia/Tokyo')
element_at(x, 1)
try_element_at(x, 1)
array_insert(x, -1, 9)
array(1, 2)[0]
sort_array(x, FALSE)
slice(x, 2, 2)
str_to_map(s)
split(s, ',', 2)
regexp_extract(s, '(\\d+)-(\\d+)')
concat_ws('-', s, NULL)
TRIM(BOTH 'x' FROM s)
TRIM(TRAILING FROM s)
TRIM(s)
ltrim('x', s)
mask(s, lowerChar => 'q')
struct(1 AS x, 'y' AS z).z
transform(x, (y, i) -> y + i)
max(v) FILTER(WHERE v > 1)
any(v > 1)
some(v > 1)
first(v) IGNORE NULLS
log(v)
log(2, v)
signum(v)
pow(v, 2)
ceil(v, 1)
a & b | c ^ ~d
-128Y
-9223372036854775808L
1.10BD
1.5F
1E-2
'a\nb\'c'
'\u0041\101\%\_\Z'
X'1F2E'
s LIKE ANY ('x%', 'a%')
s LIKE 'a#_b' ESCAPE '#'
s ILIKE 'A%'
s RLIKE '^a.c$'
s COLLATE UTF8_LCASE = 'a'
a DIV 2
a % 3
a || b || 1
EXTRACT(DOW FROM t)
TIME '01:02:03'
""".strip().split("\n")


def plain(text: str) -> str:
    return text.replace(" ", "").upper() if "'" not in text else text.replace(" ", "").casefold()


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_spark_functions_keep_their_names_and_arguments(text: str) -> None:
    node = parse_expression(text)
    assert plain(to_spark(node)) == plain(text)
    assert plain(to_spark(node.copy())) == plain(text)


@pytest.mark.parametrize("name", KNOWN)
def test_a_function_that_the_planner_knows_keeps_each_of_its_arguments(name: str) -> None:
    for count in (1, 2, 3) if name.startswith("SUBSTR") else range(6):
        text = f"{name}({', '.join(f'a{n}' for n in range(count))})"
        assert to_spark(parse_expression(text)).upper() == text.upper()


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("POSITION('b' IN s)", "POSITION('b', s)"),
        ("OVERLAY(s PLACING 'x' FROM 7 FOR 0)", "OVERLAY(s, 'x', 7, 0)"),
        ("SUBSTRING(s FROM 2 FOR 3)", "SUBSTRING(s, 2, 3)"),
        ("1 | 2 << 1", "1 | SHIFTLEFT(2, 1)"),
        ("8 & 8 >> 1 + 1", "8 & SHIFTRIGHT(8, 1 + 1)"),
        ("-8 >>> 1 << 2", "SHIFTLEFT(SHIFTRIGHTUNSIGNED(-8, 1), 2)"),
        ("s || 1 << 2", "SHIFTLEFT(s || 1, 2)"),
        ("first(v, true)", "FIRST(v) IGNORE NULLS"),
        ("X 'FF'", "X'FF'"),
        ("'a' 'b'", "CONCAT('a', 'b')"),
    ],
)
def test_other_spellings_mean_the_same(text: str, spark: str) -> None:
    assert to_spark(parse_expression(text)) == spark


def test_several_values_of_max_by_are_taken_in_stream_order() -> None:
    node = parse_expression("max_by(s, v, 2)")
    assert is_aggregate(node)
    assert decompose(node) is None
    assert "__t, __w, __p" in ordered_text(node)
    assert "reverse" in ordered_text(node)
    assert "reverse" not in ordered_text(parse_expression("min_by(s, v, 2)"))


@pytest.mark.parametrize("text", ["b\0", "it's", "back\\slash", "a\nb", "\u2028", "%d'\\\0"])
def test_a_text_that_the_engine_writes_parses_to_the_same_tree(text: str) -> None:
    assert parse_expression(literal(text)).name == text
