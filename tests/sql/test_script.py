"""Invalid text: problems with places, never an exception."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from rowtime.core.errors import Refused
from rowtime.sql.places import place_at
from rowtime.sql.script import parse_expression, parse_script
from rowtime.sql.statements import Query
from tests.sql.case_files import scripts


@pytest.mark.parametrize(
    ("text", "line", "column", "says", "hint"),
    [
        ("SELCT STREAM * FROM s", 1, 1, "a statement begins with", "Did you mean SELECT instead of SELCT?"),
        ("SELECT STREAM *\nFORM s", 2, 6, "s is not expected here", "Did you mean FROM instead of FORM?"),
        ("SELECT STREAM COUNT(*\nFROM s", 2, 1, "a closing parenthesis is missing", "Check that each"),
        (
            "SELECT STREAM FLOOR(FLOOR(t TO HOUR) AS h FROM s",
            1,
            38,
            "a closing parenthesis is missing",
            "Check that each",
        ),
        ("SELECT STREAM STEP(n BY 2 AS h FROM s", 1, 27, "a closing parenthesis is missing", "Check that each"),
        ("SELECT STREAM EXTRACT(YEAR FROM t AS h FROM s", 1, 35, "a closing parenthesis is missing", "Check that each"),
        (
            "SELECT STREAM k FROM (SELECT STREAM k FROM e EMIT CHANGES) AS x",
            1,
            46,
            "a closing parenthesis",
            "EMIT belongs at the end",
        ),
        ("SELECT STREAM a FROM", 1, 17, "ends too early", ""),
        ("SELECT STREAM a * FROM s", 1, 19, "This does not parse: an expression is missing.", ""),
        ("CREATE STREAM s (a INT,\n  b FOO)", 2, 5, "column b needs a type", ""),
        ("CREATE STREAM s (a INT) USING a USING b", 1, 39, "USING is given twice", ""),
        ("CREATE STREAM s (t TIMESTAMP, EVENT TIME (t))", 1, 31, "EVENT TIME comes after the list of columns", ""),
        ("CREATE STREAM s (t TIMESTAMP EVENT TIME)", 1, 36, "EVENT TIME comes after the list of columns", ""),
        ("SELECT STREAM FLOOR(t TO DECADE) FROM s", 1, 26, "a time unit is expected", ""),
        ("SELECT STREAM FLOOR(t TO CENTURY) FROM s", 1, 26, "a time unit is expected", ""),
        ("SELECT STREAM FLOOR(t TO) FROM s", 1, 25, "a time unit is expected", ""),
        ("SELECT STREAM STEP(t, 3) FROM s", 1, 21, "STEP needs BY", ""),
        ("SELECT STREAM STEP(t BY 0) FROM s", 1, 25, "the step must be above zero", ""),
        ("SELECT STREAM STEP(t BY 'x') FROM s", 1, 25, "the step must be above zero", ""),
        ("SELECT STREAM STEP(t BY INTERVAL '0' HOUR) FROM s", 1, 38, "the step must be above zero", ""),
        ("SELECT STREAM a FROM s ORDER BY a WITHIN 5", 1, 42, "an interval is expected", ""),
        ("SELECT STREAM t + INTERVAL 'x' HOUR FROM s", 1, 19, "'x' is not an amount of HOUR", ""),
        ("SELECT STREAM t + INTERVAL '1.5' HOUR FROM s", 1, 19, "only seconds have fractions", ""),
        ("SELECT STREAM t + INTERVAL '5' FROM s", 1, 19, "needs a unit", ""),
        ("SELECT STREAM a FROM 'abc", 1, 22, "the ' that opens here is never closed", ""),
        ('SELECT STREAM "abc FROM s', 1, 15, 'the " that opens here is never closed', ""),
        ("SELECT 1 /* note", 1, 10, "the comment that opens here is never closed", ""),
        ("SELECT \0 1", 1, 8, "a NUL byte", ""),
        ("ALTER STREAM s SET BOUND 3", 1, 16, "ALTER STREAM needs", ""),
        ("DROP DATABASE d", 1, 6, "DROP takes", ""),
        ("ELSE", 1, 1, "a statement begins with", ""),
    ],
)
def test_a_problem_says_what_and_where(text: str, line: int, column: int, says: str, hint: str) -> None:
    (problem,) = parse_script(text).problems
    assert problem.code == "R101"
    assert problem.place is not None
    assert (problem.place.line, problem.place.column) == (line, column), str(problem)
    assert problem.place.text == text.split("\n")[line - 1]
    assert says in problem.message
    assert problem.hint.startswith(hint)


def test_all_problems_of_a_file_are_reported_and_the_rest_is_parsed() -> None:
    script = parse_script("SELECT STREAM FROM;\nSELECT STREAM a FROM s;\n\nDROP x;\nSELECT ';' FROM s; -- ;\nSELECT 'a")
    assert [problem.place.line for problem in script.problems if problem.place] == [1, 4, 6]
    assert [statement.place.line for statement in script.statements] == [2, 5]


@pytest.mark.parametrize("text", ["", "  \n", ";;", "-- nothing", "/* nothing */"])
def test_empty_text_has_no_statement_and_no_problem(text: str) -> None:
    script = parse_script(text)
    assert (script.statements, script.problems) == ((), ())


@pytest.mark.parametrize("depth", [200, 5_000])
def test_deep_nesting_gives_an_answer(depth: int) -> None:
    script = parse_script("SELECT STREAM " + "(" * depth + "1" + ")" * depth + " FROM s")
    assert len(script.statements) + len(script.problems) == 1


def test_a_long_sum_is_not_deeply_nested() -> None:
    (statement,) = parse_script("SELECT STREAM " + " + ".join(["1"] * 2_000) + " FROM s").statements
    assert isinstance(statement, Query)


def test_an_expression_is_refused_with_its_problem() -> None:
    for text in ("", "1 +", "a b c", "'"):
        with pytest.raises(Refused) as refused:
            parse_expression(text)
        assert refused.value.problems[0].code == "R101"


def test_a_caret_is_under_its_word_with_any_line_end() -> None:
    place = place_at("a\r\n\tb c\r\n", 6, 6)
    assert (place.line, place.column, place.text) == (2, 4, " b c")


CORPUS = sorted(set(scripts().values()))


def test_no_script_is_read_without_one_of_its_parentheses() -> None:
    strings_and_comments = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
    read = list[str]()
    for text in CORPUS:
        masked = strings_and_comments.sub(lambda found: "." * len(found.group()), text)
        places = [place for place, sign in enumerate(masked) if sign in "()"]
        without = [text[:place] + text[place + 1 :] for place in places]
        read += [changed for changed in without if not parse_script(changed).problems]
    assert read == []


PIECES = some.sampled_from(
    ["'", '"', "`", "(", ")", ";", "--", "/*", "*/", ",", ".", "\0", "\ud800", "é", "\\", "0x", "1e", "$", "{", "{%"]
    + [" WITHIN ", " OVER ", " STEP(", " INTERVAL ", " TABLE ", " ELSE ", " BEGIN ", " END ", " STREAM ", " WITH "]
    + [" GROUP BY ", " ORDER BY ", " CASE ", " AS ", " FROM ", " SELECT ", " CREATE ", " UNION ", " @x ", " :y ", " ? "]
)


@some.composite
def mutations(draw: some.DrawFn) -> str:
    """A valid script with up to three parts removed or replaced by something else."""
    text = draw(some.sampled_from(CORPUS))
    for _ in range(draw(some.integers(1, 3))):
        start = draw(some.integers(0, len(text)))
        end = min(len(text), start + draw(some.integers(0, 12)))
        text = text[:start] + draw(some.one_of(PIECES, some.just(""), some.text(max_size=4))) + text[end:]
    return text


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutations())
def test_no_text_raises(text: str) -> None:
    script = parse_script(text)
    for problem in script.problems:
        assert problem.place is not None
        lines = text.split("\n")
        assert 1 <= problem.place.line <= len(lines)
        assert 1 <= problem.place.column <= len(lines[problem.place.line - 1]) + 1
        assert str(problem)
