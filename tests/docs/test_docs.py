"""The pages are correct: SQL binds or is refused as shown, Python runs, codes and links exist."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
import yaml

import rowtime as rt
from rowtime.plan.program import compile_script
from rowtime.testing.runner import run_paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/RESULTS.md"]
)
CITING = ("src", "tests", "reliability", "benchmarks", "conformance", "examples")
WITHOUT_TESTS = ("## 1. Terms",)


def blocks(page: str, kind: str) -> list[str]:
    """The fenced blocks whose first line is exactly ``kind``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [match[2] for match in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE) if match[1] == kind]


SCRIPTS = ("docs/sql.md", "docs/panes.md", "docs/nested.md", "docs/from-sqlstream.md", "docs/match_recognize.md",
           "docs/from-streams-and-streaminsight.md")  # fmt: skip


def refused_blocks() -> list[tuple[str, str, str]]:
    pattern = re.compile(r"^```sql refused: (R\d+)\n((?:.*\n)*?)```$", re.MULTILINE)
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in (*SCRIPTS, "docs/lifetimes.md")}
    return [(page, code, sql) for page, text in texts.items() for code, sql in pattern.findall(text)]


# -- SQL --------------------------------------------------------------------------------


@pytest.mark.parametrize("page", SCRIPTS)
def test_the_sql_page_is_one_script_that_binds(page: str) -> None:
    script = "".join(blocks(page, "sql"))
    assert script.count("SELECT STREAM") >= 3
    assert compile_script(script).problems == ()


def test_the_page_on_lifetimes_is_one_script_that_binds() -> None:
    assert compile_script("".join(blocks("docs/lifetimes.md", "sql"))).problems == ()


@pytest.mark.parametrize(("page", "code", "sql"), refused_blocks())
def test_statements_that_the_sql_page_calls_refused_are_refused(page: str, code: str, sql: str) -> None:
    script = "".join(blocks(page, "sql"))
    assert {problem.code for problem in compile_script(script + sql).problems} == {code}


# -- Python, and commands that a reader types -------------------------------------------


def test_the_pipeline_of_the_readme_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = blocks("README.md", "python")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - this is what the page tells users to run
    query = names["query"]
    assert isinstance(query, rt.Query)
    rows = _first_rows(tmp_path / "out", 1)
    assert sorted((row["page"], row["hits"]) for row in rows) == [("a", 1), ("b", 1)]
    waits = query.waiting()
    assert [wait.held for wait in waits] == [1], "the minute of 10:02 waits"
    assert query.ledger["in_order"]["LATE"] == 1
    assert not query.isActive


def _first_rows(folder: Path, seconds: float) -> list[dict[str, object]]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        files = sorted(folder.glob("*.parquet"))
        if files:
            return [row for file in files for row in pq.read_table(file).to_pylist()]
        time.sleep(0.1)
    pytest.fail(f"no rows within {seconds} s")


def test_the_transcript_of_the_page_passes(spark: SparkSession, tmp_path: Path) -> None:
    [text] = blocks("docs/transcripts.md", "yaml")
    assert yaml.safe_load(text)["title"]
    (tmp_path / "page.yaml").write_text(text, encoding="utf-8")
    said: list[str] = []
    assert run_paths([tmp_path / "page.yaml"], said.append, spark) == (1, 0), said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "least"), [("docs/from-sqlstream.md", 5), ("docs/from-streams-and-streaminsight.md", 2)]
)
def test_the_differences_from_another_system_are_as_the_page_shows_them(
    spark: SparkSession, tmp_path: Path, page: str, least: int
) -> None:
    texts = blocks(page, "yaml")
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.yaml").write_text(text, encoding="utf-8")
    said: list[str] = []
    assert run_paths([tmp_path], said.append, spark) == (len(texts), 0), said
    assert len(texts) >= least


def test_the_commands_of_the_readme_are_the_commands() -> None:
    from rowtime.cli.main import COMMANDS

    listed = set(re.findall(r"^\| `rowtime ([\w-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert listed
    assert listed <= {*COMMANDS}


def test_the_make_targets_of_the_pages_exist() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^    )make (\w+)\b(?!=)", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert named <= targets, page


# -- codes and links --------------------------------------------------------------------


def test_every_error_code_is_on_its_page_and_no_other() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    raised = set(re.findall(r'"(R\d{3})"', source))
    listed = re.findall(r"^\| (R\d{3}) \|", page, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == raised


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}, target


CITED = re.compile(r"\b[Ss]emantics,?\s+(?:#\s+)?((?:\d+(?:\.\d+)?(?:,\s+|\s+and\s+|\s+to\s+)?)+)")


def test_the_rules_that_are_cited_exist() -> None:
    page = (ROOT / "docs/semantics.md").read_text(encoding="utf-8")
    rules = set(re.findall(r"^##+ (\d+(?:\.\d+)?)\b", page, re.MULTILINE))
    places = [path for room in CITING for path in (ROOT / room).rglob("*.py")] + PAGES
    cited = {
        rule: path
        for path in places
        for numbers in CITED.findall(path.read_text(encoding="utf-8"))
        for rule in re.findall(r"\d+(?:\.\d+)?", numbers)
    }
    assert len(cited) > 25
    assert {rule: path for rule, path in cited.items() if rule not in rules} == {}


def test_each_section_of_the_rules_names_tests_that_exist() -> None:
    page = (ROOT / "docs/semantics.md").read_text(encoding="utf-8")
    for section in re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]:
        named = re.findall(r"`(tests/[^`]+)`", section.partition("*Tests:*")[2])
        assert named or section.startswith(WITHOUT_TESTS), section.splitlines()[0]
        assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_page_on_python_has_every_public_name() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    named = {tuple(path.rsplit(".", 1)) for path in re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)}
    assert {name: where for name, where in rt._WHERE.items() if where not in named} == {}


def test_the_page_on_observing_lists_the_parts_of_a_tick() -> None:
    from rowtime.state.costs import PARTS

    page = (ROOT / "docs/observing.md").read_text(encoding="utf-8")
    assert all(f"| `{part}` | {meaning} |" in page for part, meaning in PARTS.items())


def test_the_page_on_observing_lists_the_records_of_the_log() -> None:
    page = (ROOT / "docs/observing.md").read_text(encoding="utf-8")
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    said = set(re.findall(r'"event": "([\w ]+)"|(?:_of\(run, |_warn\()"(\w+)"', source))
    listed = re.findall(r"^\| `([\w ]+)` \| (?:debug|info|warning|error) \|", page, re.MULTILINE)
    assert {one or other for one, other in said} == set(listed)


def test_the_page_on_observing_lists_the_metrics_and_no_others() -> None:
    from rowtime.observe.metrics import FAMILIES

    page = (ROOT / "docs/observing.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `(rowtime_\w+)` \| (.*?) ?\| (\w+) \| (.+) \|$", page, re.MULTILINE)
    labels = {family: ", ".join(f"`{name}`" for name in family.labels) for family in FAMILIES}
    assert found == [(family.sample, labels[family], family.kind, family.meaning) for family in FAMILIES]


def test_the_page_on_observing_lists_the_alerts() -> None:
    page = (ROOT / "docs/observing.md").read_text(encoding="utf-8")
    rules = yaml.safe_load((ROOT / "docs/monitoring/alerts.yml").read_text())["groups"][0]["rules"]
    assert re.findall(r"^\| `(Rowtime\w+)` \|", page, re.MULTILINE) == [rule["alert"] for rule in rules]
