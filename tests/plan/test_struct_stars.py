"""``st.*`` lists the fields of a declared struct, at any depth, and nothing else."""

from __future__ import annotations

import pytest

from rowtime.plan.program import compile_script

NESTED = "CREATE STREAM n (who STRUCT<id: INT, at: STRUCT<x: INT, `y z`: STRING>>, v INT, tags ARRAY<STRING>);\n"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT STREAM who.* FROM n", ("id", "at")),
        ("SELECT STREAM N.WHO.*, v FROM n", ("id", "at", "v")),
        ("SELECT STREAM who.at.* FROM n", ("x", "y z")),
        ("SELECT STREAM m.who.at.* FROM n AS m", ("x", "y z")),
        ("SELECT STREAM q.at.* FROM (SELECT STREAM who.* FROM n) AS q", ()),
        ("SELECT STREAM who.at.*, t FROM n LATERAL VIEW EXPLODE(tags) x AS t", ("x", "y z", "t")),
    ],
)
def test_the_fields_are_columns(query: str, names: tuple[str, ...]) -> None:
    found = compile_script(f"{NESTED}{query};")
    if names:
        assert found.problems == ()
        assert found.operators[-1].emits().names == names
    else:
        assert [problem.code for problem in found.problems] == ["R103"]


@pytest.mark.parametrize("star", ["v.*", "nobody.*", "who.id.*", "tags.*"])
def test_a_star_of_a_value_without_fields_is_refused(star: str) -> None:
    [problem] = compile_script(f"{NESTED}SELECT STREAM {star} FROM n;").problems
    assert (problem.code, problem.place.column if problem.place else 0) == ("R103", 15)
