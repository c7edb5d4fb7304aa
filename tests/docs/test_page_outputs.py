"""The rows and messages below the examples of a page are those of a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.scripts import ROOT, script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OUTPUTS = script("page_outputs")
LONG = ("docs/sql.md", "docs/lifetimes.md", "docs/nested.md", "docs/functions.md", "docs/lakes.md")
"""These pages take ten seconds of processor time or more."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in OUTPUTS.PAGES]
)
def test_the_page_shows_what_its_examples_give(spark: SparkSession, name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    made, silent = OUTPUTS.outputs_of(spark, page)
    assert OUTPUTS.written(page, made) == page, "run make outputs"
    assert silent == list(OUTPUTS.SILENT.get(name, ())), "these examples give no rows"
    changed = _with_another_row(page)
    assert OUTPUTS.written(changed, made) == page != changed, "a changed row is not noticed"


def _with_another_row(page: str) -> str:
    """Return the page with another digit in its first table or output."""
    found = re.search(r"^```text (?:rows|output)\n(?:.*\n)*?```$", page, re.MULTILINE)
    assert found is not None
    place = max(place for place in range(*found.span()) if page[place].isdigit())
    return f"{page[:place]}{(int(page[place]) + 1) % 10}{page[place + 1 :]}"
