"""A test follows every hint of the code, unless the hint has nothing to execute (`hint_kinds.PLAIN`)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from rowtime.core.errors import Problem
from rowtime.plan.program import compile_script
from tests.plan import hint_kinds, hint_texts
from tests.plan.hint_cases import CASES, GIVEN, Case
from tests.plan.test_hints_work import CASES as OTHERS
from tests.plan.test_hints_work import GIVEN as OTHERS_GIVEN

TESTS = Path(__file__).parents[1]
STATEMENT = re.compile(
    r"\b(SELECT|CREATE|ALTER|INSERT|DROP|GROUP BY|ORDER BY|PARTITION BY|WITHIN|JOIN|CAST|WITH|OPTIONS|EMIT|WHERE)\b"
    r"|--[a-z]|\browtime (run|bound|check|insert|readmit|skip|status|trace|verify|explain) "
)
"""Text that looks like SQL, a command or an option."""
MAY_LOOK_SO = ("it needs another installation, which no test changes", "it says what to do without words to type")


@cache
def problems_of(script: str) -> tuple[Problem, ...]:
    """The problems of a script; of the given objects only the named ones are compiled."""
    given = [line for line in GIVEN.splitlines() if re.search(rf"\b{line.split()[2]}\b", script)]
    program = compile_script("\n".join([*given, script]))
    return (*program.problems, *program.warnings)


def followed(case: Case, hint: str) -> str | None:
    """The script as changed by a reader who follows the hint; ``None`` if the hint does not say that."""
    found = re.search(case.taken, hint)
    if found is None:
        return None
    new = case.new.format(*found.groups())
    return re.sub(case.old, lambda _: new, case.script, count=1, flags=re.DOTALL) if case.old else new


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code} {case.script[:60]} {case.taken[:20]}")
def test_a_hint_that_is_followed_is_accepted(case: Case) -> None:
    told = [problem.hint for problem in problems_of(case.script) if problem.code == case.code]
    scripts = [script for hint in told if (script := followed(case, hint)) is not None]
    assert scripts, f"none of {told} has {case.taken}"
    assert scripts[0] != case.script
    assert [str(problem) for problem in problems_of(scripts[0])] == []


def test_the_code_has_no_hint_without_a_test() -> None:
    said = {problem.hint for case in CASES for problem in problems_of(case.script) if problem.code == case.code}
    for script, code, _ in OTHERS:
        program = compile_script(OTHERS_GIVEN + script)
        said |= {problem.hint for problem in (*program.problems, *program.warnings) if problem.code == code}
    known = {*hint_kinds.FOLLOWED, *(text for texts in hint_kinds.PLAIN.values() for text in texts)}
    assert len(hint_texts.hints()) > 300
    missing = {
        f"{hint.file}:{hint.line}: {hint.shown}"
        for hint in hint_texts.hints()
        if hint.words and hint.shown not in known and not any(map(hint.gives, said))
    }
    assert missing == set()


def test_the_list_of_hints_has_only_hints_of_the_code() -> None:
    there = {hint.shown for hint in hint_texts.hints()}
    assert {*hint_kinds.FOLLOWED} - there == set()
    assert {text for texts in hint_kinds.PLAIN.values() for text in texts} - there == set()
    for test in hint_kinds.FOLLOWED.values():
        file, _, name = test.partition("::")
        assert f"def {name}(" in (TESTS.parent / file).read_text(), test
    for kind, texts in hint_kinds.PLAIN.items():
        if kind not in MAY_LOOK_SO:
            assert [text for text in texts if STATEMENT.search(text)] == [], kind
