"""The tables of options in the docs equal the options that the formats declare, and each option is in one."""

from __future__ import annotations

import pytest

from rowtime.plan.formats import FORMATS
from rowtime.plan.formats.contract import Option, anything, boolean, few_characters, values_of, whole
from tests.docs.scripts import ROOT, script

TABLES = script("option_tables")


@pytest.mark.parametrize("page", ["options", "kafka", "lakes", "databases", "schema-registry"])
def test_the_tables_of_a_page_are_up_to_date(page: str) -> None:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    assert TABLES.MARKED.search(text)
    assert TABLES.written(text) == text, "run make options"


def test_a_table_that_is_out_of_date_is_noticed() -> None:
    page = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    assert TABLES.written(page.replace("`optimize.files`", "`optimise.files`")) == page


@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind not in ("console", "memory", "function", "iceberg")])
def test_the_page_of_options_has_every_option_of_a_format(kind: str) -> None:
    page = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    there = "".join(page for name, page in _parts(page) if name in (kind, "registry"))
    assert [one.name for one in FORMATS[kind].options.values() if f"`{one.name}`" not in there] == []


def _parts(page: str) -> list[tuple[str, str]]:
    return [(found[1], found[0]) for found in TABLES.MARKED.finditer(page)]


@pytest.mark.parametrize("kind", list(FORMATS))
def test_an_option_with_a_meaning_has_a_default_and_values(kind: str) -> None:
    form = FORMATS[kind]
    for option in form.options.values():
        if option.meaning and not option.because:
            assert option.default, option.name
            assert option.side in ("", "source", "sink"), option.name
            assert option.values or option.takes is not anything, option.name
    passed = [one.name for one in form.options.values() if not one.meaning and not one.because]
    assert bool(passed) == bool(form.passed), passed


def test_the_table_describes_what_a_check_accepts() -> None:
    assert values_of(boolean) == "true or false"
    assert values_of(whole(1, 9)) == "a whole number from 1 to 9"
    assert values_of(few_characters) == "one character"
    assert values_of(anything) == "a text"


def test_both_sides_of_an_option_are_distinguished() -> None:
    option = Option("a", anything, meaning="source: read; sink: written")
    assert [TABLES._part(option.meaning, side) for side in ("source", "sink")] == ["read", "written"]
