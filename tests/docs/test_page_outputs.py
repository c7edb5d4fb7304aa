"""The rows and messages below the examples of a page are those of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.docs.page_runs import page_is_current

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


PAGES: Final = tuple(
    f"docs/{name}.md"
    for name in (
        "sql", "windows", "panes", "nested", "match_recognize", "lifetimes", "from-sqlstream",
        "from-streams-and-streaminsight", "functions", "guide", "python", "observing", "options", "profile",
        "howto/cookbook",
        "howto/local-days",
    )
)  # fmt: skip
LONG: Final = ("docs/sql.md", "docs/lifetimes.md", "docs/nested.md", "docs/functions.md")
"""These pages take ten seconds of processor time or more."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in PAGES]
)
def test_the_page_shows_what_its_examples_give(spark: SparkSession, name: str, rewrite_goldens: bool) -> None:
    page_is_current(spark, name, rewrite=rewrite_goldens)
