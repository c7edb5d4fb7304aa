"""Scripts and expressions: every text is bound, explained or refused with problems that have a code."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from reliability.fuzz import mutate
from reliability.fuzz.harness import Target
from rowtime.cli.explain import entries_of, explained_as_json, explained_as_text
from rowtime.core.errors import Problem
from rowtime.plan.check import order_of
from rowtime.plan.explain import as_text, orders_as_text
from rowtime.plan.program import compile_script

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"```sql\n(.*?)```", re.DOTALL)
COLUMNS = {"v": "BIGINT", "a": "BIGINT ASCENDING", "d": "DOUBLE DESCENDING", "p": "INT ASCENDING CHECK (p > 0)"}


@cache
def scripts() -> tuple[str, ...]:
    """The SQL of the cases, the examples and the documentation."""
    cases = sorted((ROOT / "tests" / "transcripts").rglob("*.yaml"))
    loaded = (yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader) for path in cases)  # noqa: S506 - plain texts
    of_cases = [case["sql"] for case in loaded if isinstance(case, dict) and "sql" in case]
    of_examples = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.sql"))]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    of_pages = [block for page in pages for block in _BLOCK.findall(page.read_text(encoding="utf-8"))]
    return (*of_cases, *of_examples, *of_pages)


@cache
def expressions() -> tuple[str, ...]:
    """Return the expressions of the cases about monotonicity."""
    case = yaml.safe_load((ROOT / "tests" / "transcripts" / "sqlstream" / "monotonicity.yaml").read_text("utf-8"))
    return tuple(found["expression"] for found in case["cases"])


@cache
def words() -> tuple[str, ...]:
    """Return the words of the scripts, each once."""
    return tuple(sorted({token for script in scripts() for token in mutate.tokens_of(script) if not token.isspace()}))


def _script(random_: random.Random) -> str:
    return mutate.text(random_, scripts(), words())


def _bind(text: str) -> Iterable[Problem]:
    program = compile_script(text)
    if not program.problems:
        entries = entries_of(program)
        as_text(entries), orders_as_text(entries)
        json.dumps([entries, list(explained_as_json(program)), program.described().as_json()])
        list(explained_as_text(program))
    return [*program.problems, *program.warnings]


def _expression(random_: random.Random) -> tuple[str, dict[str, str]]:
    columns = dict(COLUMNS)
    if random_.random() < 0.3:
        columns["a"] = mutate.text(random_, tuple(COLUMNS.values()), words())
    return mutate.text(random_, expressions(), words()), columns


def _order(made: tuple[str, dict[str, str]]) -> Iterator[Problem]:
    order_of(*made)
    yield from ()


def _random_words(random_: random.Random) -> str:
    return " ".join(random_.choices(words(), k=random_.choice((1, 3, 10, 40))))


def targets() -> tuple[Target, ...]:
    """Changed scripts, words in random order, expressions."""
    named: tuple[tuple[str, int, Any, Any], ...] = (
        ("script", 16, _script, _bind),
        ("words", 3, _random_words, _bind),
        ("expression", 15, _expression, _order),
    )
    return tuple(Target(*one) for one in named)
