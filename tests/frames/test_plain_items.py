"""Items that are plainly a column are known without the parser, and are what it gives."""

from __future__ import annotations

import pytest
import sqlglot

from rowtime.frames.translated import _PLAIN, parsed


@pytest.mark.parametrize(
    "text", ["__t", "`a`", "`A b` AS `c.d`", "__t AS __lt", "`true`", "`x` AS __s0_0", "`ü`", "`1`"]
)
def test_a_plain_column_is_what_the_parser_gives(text: str) -> None:
    assert _PLAIN.fullmatch(text)
    known = sqlglot.parse_one(text, read="spark")
    assert parsed(text) == known
    assert (parsed(text).sql("spark"), parsed(text).alias_or_name) == (known.sql("spark"), known.alias_or_name)


@pytest.mark.parametrize(
    "text", ["a", "true", "__t + 1", "`a``b`", "`a`.`b`", "`a` AS b", "__t as __u", "1 AS __n", "__ü"]
)
def test_anything_else_is_parsed(text: str) -> None:
    assert not _PLAIN.fullmatch(text)
    assert parsed(text) == sqlglot.parse_one(text, read="spark")
