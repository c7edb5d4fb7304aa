"""Every SQL and Python block of every page runs, and the page shows what it gives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs import test_page_outputs
from tests.docs.page_blocks import ROOT, blocks_of
from tests.docs.test_docs import PAGES
from tests.kafka import test_pages_on_kafka
from tests.reliability import test_pages_on_a_cluster
from tests.stores import test_pages_on_stores

RUN = (
    *test_page_outputs.PAGES, *test_pages_on_kafka.PAGES, *test_pages_on_stores.PAGES, *test_pages_on_a_cluster.PAGES,
)  # fmt: skip
ELSEWHERE = {"sql clicks.sql": "README.md", "sql kafka.sql": "docs/tutorial.md"}
"""Blocks that `test_first_screen` and `test_tutorial_over_kafka` run as the commands of the page say."""
KINDS = ("sql", "sql input", "python")


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_no_block_is_left_out(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    kinds = {block.kind for block in blocks_of(page.read_text(encoding="utf-8"))}
    code = {kind for kind in kinds if kind.split()[:1] in (["sql"], ["python"])}
    left = {kind for kind in code if ELSEWHERE.get(kind) != name and not kind.startswith("sql refused: R")}
    assert left <= set(KINDS)
    assert not left or name in RUN


def test_every_block_shows_what_it_gives() -> None:
    for name in RUN:
        blocks = blocks_of((ROOT / name).read_text(encoding="utf-8"))
        for block, following in zip(blocks, [*(block.kind for block in blocks[1:]), ""], strict=True):
            gives = re.search(r"\bSELECT\b|\bprint\(", block.text)
            if block.kind in ("sql", "python") and gives:
                assert following.startswith("text "), f"{name}: {block.text}"
