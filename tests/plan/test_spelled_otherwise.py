# ruff: noqa: E501 - a query a line
"""Forms of other systems: each has the same plan as the form in the docs."""

from __future__ import annotations

import pytest

from rowtime.plan.program import compile_script

GIVEN = """CREATE STREAM s (k STRING, n INT);
CREATE STREAM r (k STRING, n INT);
CREATE STREAM t (tags ARRAY<STRING>, m MAP<STRING, INT>, parts ARRAY<STRUCT<sku: STRING, n: INT>>);
CREATE STREAM app.o (k STRING, st STRUCT<x: INT>);
CREATE TABLE app.kept (k STRING, n INT) USING csv OPTIONS (path '/x');
"""
ELEMENTS = "FROM t LATERAL VIEW"
MINUTE = "RANGE INTERVAL '1' MINUTE PRECEDING"
HOUR = "RANGE INTERVAL '1' HOUR PRECEDING"


def plan_of(script: str) -> list[str]:
    """The operators, as data; there must be no problems."""
    program = compile_script(GIVEN + script)
    assert [str(problem) for problem in program.problems] == []
    return [repr(node) for node in program.operators]


@pytest.mark.parametrize(
    ("form", "plain"),
    [
        (
            f"SELECT STREAM a.n FROM s AS a OVER ({MINUTE}) JOIN r b OVER ({HOUR}) ON a.k = b.k",
            f"SELECT STREAM a.n FROM s OVER ({MINUTE}) AS a JOIN r OVER ({HOUR}) AS b ON a.k = b.k",
        ),
        (
            f"SELECT STREAM a.n FROM s OVER w AS a JOIN r AS b OVER w ON a.k = b.k WINDOW w AS ({HOUR})",
            f"SELECT STREAM a.n FROM s OVER ({HOUR}) AS a JOIN r OVER ({HOUR}) AS b ON a.k = b.k",
        ),
        (
            f"SELECT STREAM a.n FROM s OVER w ({HOUR}) AS a LEFT JOIN r AS b ON a.k = b.k WINDOW w AS ()",
            f"SELECT STREAM a.n FROM s OVER ({HOUR}) AS a LEFT JOIN r AS b ON a.k = b.k",
        ),
        (
            (
                f"SELECT STREAM a.n FROM (SELECT STREAM * FROM s) AS a OVER w JOIN (SELECT STREAM k FROM r) OVER w AS b "
                f"ON a.k = b.k WINDOW w AS ({HOUR})"
            ),
            (
                f"SELECT STREAM a.n FROM (SELECT STREAM * FROM s) OVER ({HOUR}) AS a "
                f"JOIN (SELECT STREAM k FROM r) OVER ({HOUR}) AS b ON a.k = b.k"
            ),
        ),
        (
            (
                f"SELECT STREAM SUM(a.n) OVER w AS x FROM s OVER j AS a JOIN r OVER j AS b ON a.k = b.k "
                f"WINDOW w AS (ROWS 3 PRECEDING), j AS ({HOUR})"
            ),
            (
                f"SELECT STREAM SUM(a.n) OVER (ROWS 3 PRECEDING) AS x FROM s OVER ({HOUR}) AS a "
                f"JOIN r OVER ({HOUR}) AS b ON a.k = b.k"
            ),
        ),
        (
            f"SELECT STREAM x FROM (SELECT STREAM SUM(n) OVER w AS x FROM s WINDOW w AS ({HOUR})) AS q",
            f"SELECT STREAM x FROM (SELECT STREAM SUM(n) OVER ({HOUR}) AS x FROM s) AS q",
        ),
        (
            f"SELECT STREAM SUM(n) OVER product ({HOUR}) AS x FROM s WINDOW product AS (PARTITION BY k)",
            f"SELECT STREAM SUM(n) OVER (PARTITION BY k {HOUR}) AS x FROM s",
        ),
        (
            "SELECT STREAM SUM(n) OVER w (ORDER BY s.ROWTIME ROWS 3 PRECEDING) AS x FROM s WINDOW w AS (PARTITION BY k)",
            "SELECT STREAM SUM(n) OVER (PARTITION BY k ORDER BY s.ROWTIME ROWS 3 PRECEDING) AS x FROM s",
        ),
        (
            "SELECT STREAM k FROM s UNION DISTINCT SELECT STREAM k FROM r WITH UNBOUNDED STATE",
            "SELECT STREAM k FROM s UNION SELECT STREAM k FROM r WITH UNBOUNDED STATE",
        ),
        (
            "SELECT STREAM FLOOR(s.ROWTIME TO HOUR) AS h, k FROM s EMIT AFTER WATERMARK",
            "SELECT STREAM FLOOR(s.ROWTIME TO HOUR) AS h, k FROM s",
        ),
        (f"SELECT STREAM tag {ELEMENTS} EXPLODE(tags) x tag", f"SELECT STREAM tag {ELEMENTS} EXPLODE(tags) x AS tag"),
        (f"SELECT STREAM a, b {ELEMENTS} EXPLODE(m) x a, b", f"SELECT STREAM a, b {ELEMENTS} EXPLODE(m) x AS a, b"),
        (f"SELECT STREAM col {ELEMENTS} EXPLODE(tags)", f"SELECT STREAM col {ELEMENTS} EXPLODE(tags) x AS col"),
        (
            f"SELECT STREAM x.* {ELEMENTS} EXPLODE(m) x",
            f"SELECT STREAM key, value {ELEMENTS} EXPLODE(m) x AS key, value",
        ),
        (
            f"SELECT STREAM pos, t.col {ELEMENTS} OUTER POSEXPLODE(tags) x",
            f"SELECT STREAM pos, col {ELEMENTS} OUTER POSEXPLODE(tags) x AS pos, col",
        ),
        (f"SELECT STREAM sku {ELEMENTS} INLINE(parts)", f"SELECT STREAM x.sku {ELEMENTS} INLINE(t.parts) x AS sku, n"),
        ("SELECT STREAM a FROM t, UNNEST(parts) AS x(a, b)", f"SELECT STREAM a {ELEMENTS} INLINE(parts) x AS a, b"),
        ("SELECT STREAM tag FROM t, UNNEST(tags) AS tag", f"SELECT STREAM tag {ELEMENTS} EXPLODE(tags) x AS tag"),
        ("SELECT STREAM p.sku FROM t, UNNEST(parts) AS p", f"SELECT STREAM p.sku {ELEMENTS} EXPLODE(parts) x AS p"),
        (f"SELECT STREAM t.*, x.* {ELEMENTS} EXPLODE(tags) x AS u", f"SELECT STREAM * {ELEMENTS} EXPLODE(tags) x AS u"),
        ("SELECT STREAM app.o.st.x FROM app.o", "SELECT STREAM o.st.x FROM app.o"),
        (
            "SELECT STREAM k FROM s WHERE k IN (SELECT k FROM app.kept WHERE app.kept.n > s.n AND app.kept.k <> '')",
            "SELECT STREAM k FROM s WHERE k IN (SELECT k FROM app.kept WHERE kept.n > s.n AND kept.k <> '')",
        ),
    ],
)
def test_a_form_is_the_plan_of_the_plain_one(form: str, plain: str) -> None:
    assert plan_of(form) == plan_of(plain)


def test_a_star_names_the_input_or_its_elements() -> None:
    text = f"{GIVEN}SELECT STREAM x.*, t.m {ELEMENTS} EXPLODE(tags) x AS tag; SELECT STREAM t.* {ELEMENTS} EXPLODE(m) x"
    program = compile_script(text)
    assert program.problems == ()
    listed = [[name for name in sink.emits().names if name != "rowtime"] for sink in program.sinks]
    assert listed == [["tag", "m"], ["tags", "m", "parts"]]


def test_elements_have_no_other_columns() -> None:
    (problem,) = compile_script(f"{GIVEN}SELECT STREAM x.m {ELEMENTS} EXPLODE(tags) x AS tag").problems
    assert (problem.code, problem.message, problem.hint) == ("R103", "there is no column m in x", "There are: tag.")


def test_a_union_is_distinct_over_the_union_all() -> None:
    of_s, of_r = (f"SELECT STREAM FLOOR({one}.ROWTIME TO HOUR) AS h, k FROM {one}" for one in "sr")
    made = plan_of(f"{of_s} UNION {of_r}")
    assert made == plan_of(f"SELECT STREAM DISTINCT h, k FROM ({of_s} UNION ALL {of_r})")
    assert plan_of(f"WITH x AS ({of_s}) SELECT STREAM h, k FROM x UNION {of_r} ORDER BY h, k") != made
    thrice = plan_of(f"SELECT STREAM DISTINCT h, k FROM ({of_s} UNION ALL {of_r} UNION ALL {of_s})")
    assert plan_of(f"{of_s} UNION ALL {of_r} UNION {of_s}") == thrice, "the last word is about all before"


HOURLY = "FLOOR(s.ROWTIME TO HOUR)"
LIST = "k, n, COUNT(*) AS c"
NOTHING = "ANY_VALUE({}) FILTER (WHERE FALSE) AS {}"


@pytest.mark.parametrize(
    ("group", "sets"),
    [
        (f"{HOURLY}, ROLLUP(k, n)", ("kn", "k", "")),
        (f"{HOURLY}, CUBE(k, n)", ("kn", "k", "n", "")),
        (f"{HOURLY}, ROLLUP((k, n))", ("kn", "")),
        (f"{HOURLY}, GROUPING SETS ((s.k), n, ())", ("k", "n", "")),
        (f"GROUPING SETS (({HOURLY}, k), (floor(rowtime to hour), n))", ("k", "n")),
        (f"{HOURLY}, GROUPING SETS (ROLLUP(k), (K, n))", ("k", "", "kn")),
        (f"{HOURLY}, ROLLUP(1), ROLLUP(2)", ("kn", "k", "n", "")),
        (f"{HOURLY}, k GROUPING SETS (({HOURLY}, k), {HOURLY})", ("k", "")),
    ],
)
def test_sets_are_a_group_by_for_each(group: str, sets: tuple[str, ...]) -> None:
    def one(keys: str) -> str:
        listed = [key if key in keys else NOTHING.format(key, key) for key in "kn"]
        return f"SELECT STREAM {', '.join(listed)}, COUNT(*) AS c FROM s GROUP BY {', '.join([HOURLY, *keys])}"

    listed = LIST if "n" in "".join(sets) else f"k, {NOTHING.format('n', 'n')}, COUNT(*) AS c"
    assert plan_of(f"SELECT STREAM {listed} FROM s GROUP BY {group}") == plan_of(" UNION ALL ".join(map(one, sets)))


def test_a_star_is_refused_beside_sets_as_it_is_beside_groups() -> None:
    program = compile_script(f"{GIVEN}SELECT STREAM *, COUNT(*) AS c FROM s GROUP BY {HOURLY}, ROLLUP(k)")
    assert {problem.code for problem in program.problems} == {"R129"}


@pytest.mark.parametrize(
    ("form", "plain"),
    [
        (
            "window.start FROM s GROUP BY window(s.ROWTIME, '5 minutes')",
            "TUMBLE_START({0}) AS start FROM s GROUP BY TUMBLE({0})",
        ),
        (
            "window.end FROM s GROUP BY window(s.ROWTIME, '300 seconds', '5 minutes')",
            "TUMBLE_END({0}) AS `end` FROM s GROUP BY TUMBLE({0})",
        ),
        (
            "w.n FROM (SELECT STREAM *, ROWTIME AS window FROM s) AS w GROUP BY w.n, window(w.window, '5 minutes')",
            "w.n FROM (SELECT STREAM *, ROWTIME AS window FROM s) AS w GROUP BY w.n, TUMBLE(w.window, INTERVAL 5 MINUTES)",
        ),
        (
            "window(s.ROWTIME, '5 minutes').start AS k, MAX(k) AS m FROM s GROUP BY window(s.ROWTIME, '5 minutes')",
            "TUMBLE_START({0}) AS k, MAX(k) AS m FROM s GROUP BY TUMBLE({0})",
        ),
        (
            "window(s.ROWTIME, '5 minutes') AS k, MAX(k) AS m FROM s GROUP BY window(s.ROWTIME, '5 minutes')",
            "NAMED_STRUCT('start', TUMBLE_START({0}), 'end', TUMBLE_END({0})) AS k, MAX(k) AS m FROM s GROUP BY TUMBLE({0})",
        ),
        (
            "window(s.ROWTIME, '5 minutes') AS w, COUNT(*) AS c FROM s GROUP BY w ORDER BY w, c",
            "NAMED_STRUCT('start', TUMBLE_START({0}), 'end', TUMBLE_END({0})) AS w, COUNT(*) AS c FROM s GROUP BY TUMBLE({0}) ORDER BY TUMBLE_START({0}), c",
        ),
        (
            "COUNT(*) AS c FROM s GROUP BY GROUPING SETS ((window(s.ROWTIME, '5 minutes'), k), window(s.ROWTIME, '5 minutes'))",
            "COUNT(*) AS c FROM s GROUP BY GROUPING SETS ((TUMBLE({0}), k), TUMBLE({0}))",
        ),
        (
            "FLOOR(s.ROWTIME TO HOUR) AS h, k, COUNT(*) + 1 AS c FROM s GROUP BY ALL",
            "FLOOR(s.ROWTIME TO HOUR) AS h, k, COUNT(*) + 1 AS c FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR), k",
        ),
        (
            "window(s.ROWTIME, '5 minutes').start AS h, k, SUM(n) AS x FROM s GROUP BY ALL HAVING SUM(n) > 3",
            "TUMBLE_START({0}) AS h, k, SUM(n) AS x FROM s GROUP BY TUMBLE_START({0}), k HAVING SUM(n) > 3",
        ),
    ],
)
def test_windows_of_spark_and_group_by_all_are_those_of_the_standard(form: str, plain: str) -> None:
    minutes = "s.ROWTIME, INTERVAL 5 MINUTES"
    assert plan_of(f"SELECT STREAM {form}") == plan_of(f"SELECT STREAM {plain.format(minutes)}")


@pytest.mark.parametrize("start", ["", "CREATE PUMP p AS "])
def test_table_before_the_target_of_insert_means_nothing(start: str) -> None:
    target = "CREATE STREAM o (k STRING, n INT) USING console;"
    forms = (f"{target}{start}INSERT INTO {word}o (n, k) SELECT STREAM n, k FROM s" for word in ("", "TABLE "))
    one, other = map(plan_of, forms)
    assert one == other
