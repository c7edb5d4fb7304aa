"""The how-to pages are correct: their commands run in order in an empty folder, with the output that the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from rowtime.plan.program import compile_script
from tests.docs.page_blocks import blocks_of
from tests.docs.shell import Shell, met

PAGES = sorted((Path(__file__).parents[2] / "docs" / "howto").glob("*.md"))
FOLLOWED = [page for page in PAGES if any(block.kind == "sh" for block in blocks_of(page.read_text(encoding="utf-8")))]


@pytest.mark.slow
@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_the_commands_of_a_page_say_what_it_shows(page: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    shell, said = Shell(tmp_path / "work"), list[str]()
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.kind == "sh":
            said = shell(block.text)
        elif block.kind == "text":
            met(block.text, said)


def test_there_are_pages_to_follow() -> None:
    assert {page.stem for page in FOLLOWED} >= {"backfill", "change-the-sql", "readmit", "why-nothing-comes-out"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_in_other_languages_parse(page: Path) -> None:
    for block in blocks_of(page.read_text(encoding="utf-8")):
        text = "\n".join(line.removeprefix("   ") for line in block.text.splitlines())
        if block.kind.strip() == "yaml":
            assert yaml.safe_load(text)


def test_the_sql_of_the_page_on_partitions_binds() -> None:
    text = (PAGES[0].parent / "add-a-partition.md").read_text(encoding="utf-8")
    sql = text.split("```sql\n")[1].split("```")[0]
    [problem] = compile_script(f"{sql}; SELECT STREAM taxi FROM trips WHERE nothing = 1").problems
    assert problem.code == "R103"
    assert compile_script(f"{sql}; SELECT STREAM taxi FROM trips").problems == ()
