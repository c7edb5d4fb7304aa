"""The page on functions lists those of Spark that work, and those that are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from rowtime.runtime.session import derive
from tests.docs.function_lists import lists
from tests.docs.page_blocks import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = ROOT / "docs" / "sql-functions.md"
LISTED = re.compile(r"(?<=<!-- functions of Spark -->\n\n).*?(?=\n\n<!-- end of functions -->)", re.DOTALL)


@pytest.mark.slow
def test_the_lists_of_the_page_are_those_of_spark(spark: SparkSession, rewrite_goldens: bool) -> None:
    page, made = PAGE.read_text(encoding="utf-8"), lists(derive(spark))
    assert "`regexp_replace`" in made
    assert "`uuid`" in made.partition("| refused |")[2]
    if rewrite_goldens:
        PAGE.write_text(LISTED.sub(lambda _: made, page), encoding="utf-8")
    else:
        assert LISTED.findall(page) == [made], "run make outputs"
