"""Golden files hold the plan and EXPLAIN of each script, so no plan changes unnoticed.

``make goldens`` writes the files again. Their diff is part of the review of a change.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import pytest

from rowtime.plan.explain import as_text, explain, orders_as_text
from rowtime.plan.program import Program, compile_script
from rowtime.plan.stored import FORMAT, StoredPlan
from tests.goldens.scripts import Script, scripts

PLANS = Path(__file__).parent / "plans"


def compiled(script: Script) -> Program:
    return compile_script(script.text, variables=script.variables)


def golden(program: Program) -> str:
    """The plan, EXPLAIN and EXPLAIN MONOTONICITY of a script, or its refusal."""
    told = [f"{problem.code} {problem.message}" for problem in (*program.problems, *program.warnings)]
    plan = [f"{name} = {text}" for name, text in program.described().operators.items()]
    entries = explain(program)
    parts = {"problems": told, "plan": plan, "explain": [as_text(entries)], "orders": [orders_as_text(entries)]}
    return "\n\n".join(f"== {title}\n\n" + "\n".join(lines) for title, lines in parts.items() if any(lines)) + "\n"


@pytest.mark.parametrize("name", scripts())
def test_the_plan_is_the_one_in_its_golden_file(name: str, rewrite_goldens: bool) -> None:
    program = compiled(scripts()[name])
    path, found = PLANS / f"{name}.txt", golden(program)
    if rewrite_goldens:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8")
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = "\n".join(difflib.unified_diff(known.splitlines(), found.splitlines(), "golden", "now", lineterm="", n=1))
    written = {"format": FORMAT, **program.described().as_json()}
    read = StoredPlan.read(json.loads(json.dumps(written)))
    assert read.is_of(program.operators), "it has another plan once it was written and read"
    assert found == known, f"the plan of {name} has changed; if it should, run `make goldens`:\n{changed}"


def test_every_golden_file_is_that_of_a_script(rewrite_goldens: bool) -> None:
    there = {str(path.relative_to(PLANS).with_suffix("")): path for path in PLANS.rglob("*.txt")}
    left = [path for name, path in there.items() if name not in scripts()]
    if rewrite_goldens:
        for path in left:
            path.unlink()
    assert [path for path in left if path.exists()] == []
    assert len(scripts()) > 200
