"""Binding of scripts: names, lists of columns, refusals."""

from __future__ import annotations

import json

import pytest

from rowtime.plan.bind.stream_defs import StreamDef
from rowtime.plan.clock_functions import fixed
from rowtime.plan.explain import as_text, explain
from rowtime.plan.program import Program, compile_script
from rowtime.plan.stored import StoredPlan
from rowtime.sql.generate import to_spark
from rowtime.testing import verdicts
from tests.sql.case_files import load

A = "CREATE STREAM a (v INT, t TIMESTAMP, w STRING);\n"
HOURS = "GROUP BY FLOOR(a.ROWTIME TO HOUR)"

SORTED = "SELECT STREAM t AS ROWTIME, v FROM a ORDER BY t WITHIN INTERVAL '1' HOUR EARLY BEYOND INTERVAL '1' DAY"
MADE = "(SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS t, COUNT(*) AS v FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)) AS g"
GUARDED = "CREATE STREAM x (v INT) EARLY BEYOND INTERVAL '1' DAY"
TABLE = "CREATE TABLE t (v INT) USING parquet OPTIONS (path '/t')"
FILES = "CREATE STREAM f (v INT) USING csv OPTIONS (path '/f')"
REFUSED = [
    ("CREATE STREAM b (v ARRAY<INT> ASCENDING)", "R140", "no order that could be checked"),
    ("CREATE STREAM b (v STRING COLLATE UNICODE_CI DESCENDING)", "R140", "no order that could be checked"),
    ("CREATE STREAM b (v BINARY ASCENDING)", "R140", "no order that could be checked"),
    ("CREATE STREAM b (v INT STRICTLY ASCENDING WITHIN 100 ROWS)", "R140", "contradict"),
    ("CREATE STREAM b (v INT CHECK (w > 0)); SELECT STREAM v FROM b", "R103", "b has no column w"),
    ("CREATE STREAM b (v INT CHECK (v > SUM(v))); SELECT STREAM v FROM b", "R102", "SUM"),
    ("SELECT STREAM v FROM a WHERE MONOTONIC(v) > 3", "R102", "MONOTONIC"),
    (
        f"SELECT STREAM t AS ROWTIME, COUNT(*) AS c FROM a {HOURS}, MONOTONIC(v), t",
        "R126",
        "ascend from group to group",
    ),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY w", "R138", "increasing"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY ROWTIME DESC", "R138", "increasing"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY t WITHIN INTERVAL '1' SECOND", "R181", "WITHIN"),
    (f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w ORDER BY 3", "R183", "2 entries"),
    (
        f"SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS ROWTIME FROM a {HOURS} ORDER BY YEAR(FLOOR(a.ROWTIME TO HOUR))",
        "R126",
        "the first expression of ORDER BY",
    ),
    ("SELECT STREAM v FROM a UNION ALL SELECT STREAM v FROM a ORDER BY v", "R138", "increasing"),
    (
        "SELECT STREAM t AS ROWTIME FROM a UNION ALL SELECT STREAM v AS u FROM a ORDER BY t WITHIN INTERVAL '1' SECOND",
        "R121",
        "in each input",
    ),
    ("SELECT STREAM v FROM a ORDER BY 2, v", "R183", "1 entries"),
    (
        "SELECT STREAM h FROM (SELECT STREAM UNIX_SECONDS(a.ROWTIME) AS h FROM a GROUP BY 1) AS g ORDER BY h",
        "R180",
        "no clock",
    ),
    (
        "SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(t TO HOUR) WITHIN INTERVAL '1' MINUTE, MONOTONIC(v)",
        "R182",
        "below the bound",
    ),
    ("SELECT STREAM v FROM a EMIT CHANGES", "R191", "EMIT CHANGES"),
    (f"SELECT STREAM COUNT(*) AS c FROM a {HOURS} KEYS EXPIRE AFTER INTERVAL '1' DAY", "R190", "KEYS EXPIRE"),
    ("SELECT STREAM v FROM a LIMIT 3 OFFSET 1", "R186", "OFFSET"),
    ("SELECT STREAM v FROM a LIMIT v", "R186", "whole number"),
    ("SELECT STREAM v FROM a QUALIFY v > 1", "R187", "QUALIFY"),
    ("SELECT STREAM v FROM a SORT BY v", "R190", "SORT BY"),
    ("SELECT STREAM v FROM a TABLESAMPLE (10 PERCENT)", "R190", "TABLESAMPLE"),
    (
        "WITH x AS (SELECT STREAM v FROM a), X AS (SELECT STREAM w FROM a) SELECT STREAM v FROM x",
        "R203",
        "two queries x",
    ),
    ("WITH RECURSIVE x AS (SELECT STREAM v FROM a) SELECT STREAM v FROM x", "R123", "RECURSIVE"),
    ("CREATE STREAM x (v INT) EARLY BEYOND INTERVAL '1' MONTH", "R208", "EARLY BEYOND"),
    (f"{GUARDED} RESYNC AFTER 0 ROWS", "R122", "RESYNC AFTER takes 1 to 1000 rows"),
    (f"{GUARDED} AFTER ARRIVAL RESYNC AFTER 3 ROWS", "R101", "RESYNC requires EARLY BEYOND"),
    (f"{GUARDED} EARLY BEYOND INTERVAL '1' DAY", "R101", "EARLY BEYOND is given twice"),
    (
        f"{GUARDED.replace('(v INT)', '(v INT ASCENDING)')} RESYNC AFTER 3 ROWS; SELECT STREAM v FROM x",
        "R190",
        "RESYNC of a stream with columns of declared order",
    ),
    (
        f"{GUARDED} RESYNC AFTER 3 ROWS; INSERT INTO x SELECT STREAM v FROM a; SELECT STREAM v FROM x",
        "R190",
        "a pump of this script fills it",
    ),
    (
        f"{FILES}; INSERT INTO f SELECT STREAM v FROM a; SELECT STREAM v FROM f",
        "R504",
        "a csv stream cannot be read in the script whose pump fills it",
    ),
    (f"{TABLE}; CREATE VIEW z AS SELECT v FROM t; SELECT STREAM v FROM z", "R124", "a query over tables"),
    (f"{TABLE}; CREATE STREAM t (v INT)", "R203", "t is a stream and a table"),
    ("CREATE STREAM z (v INT); CREATE VIEW z AS SELECT STREAM v FROM a", "R203", "z is a stream and a view"),
    (f"{SORTED} AFTER ARRIVAL EARLY BEYOND INTERVAL '1' DAY AFTER ARRIVAL", "R101", "AFTER ARRIVAL is given twice"),
    (f"{SORTED.replace('FROM a', f'FROM {MADE}')} AFTER ARRIVAL", "R112", "AFTER ARRIVAL"),
    (f"{SORTED} RESYNC AFTER 0 ROWS", "R122", "RESYNC AFTER takes 1 to 1000 rows"),
    (f"{SORTED} RESYNC AFTER INTERVAL '1' HOUR", "R101", "RESYNC AFTER 3 ROWS"),
    (
        f"{GUARDED} AFTER ARRIVAL; INSERT INTO x SELECT STREAM v FROM a; SELECT STREAM v FROM x",
        "R190",
        "a pump of this script fills it",
    ),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY STAGGER(a.ROWTIME, INTERVAL '1' MINUTE)", "R190", "STAGGER"),
    (f"SELECT STREAM DISTINCT COUNT(*) AS c FROM a {HOURS}, v", "R184", "no expression that closes them"),
    (f"SELECT STREAM LISTAGG(w) WITHIN GROUP (ORDER BY v) AS l FROM a {HOURS}", "R190", "ties"),
    ("CREATE VIEW x AS SELECT STREAM v FROM a; CREATE VIEW X AS SELECT STREAM w FROM a", "R203", "two views x"),
    (
        "CREATE STREAM b (v INT); INSERT INTO b SELECT STREAM v FROM a; INSERT INTO b SELECT STREAM v FROM a",
        "R203",
        "two pumps into_b",
    ),
    ("CREATE VIEW x (n, m) AS SELECT STREAM v FROM a; SELECT STREAM n FROM x", "R118", "the query has 1 columns: v"),
    ("CREATE STREAM b (v INT, w STRING); INSERT INTO b (v) SELECT STREAM v, w FROM a", "R132", "takes 1 columns (v)"),
    ("CREATE STREAM b (v INT, w STRING); INSERT INTO b (v, v) SELECT STREAM v, v + 1 AS u FROM a", "R119", "twice"),
    ("CREATE STREAM b (v INT, w STRING); INSERT INTO b (v, x) SELECT STREAM v, w FROM a", "R103", "no column x"),
    ("SELECT STREAM v FROM a ORDER BY v, a.ROWTIME", "R138", "increasing"),
    ("SELECT STREAM v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR) DESC", "R138", "increasing"),
    (
        "SELECT STREAM t AS ROWTIME, v FROM a ORDER BY FLOOR(a.ROWTIME TO HOUR), v",
        "R126",
        "AS ROWTIME must ascend with",
    ),
    ("SELECT STREAM TUMBLE(a.ROWTIME, INTERVAL '1' HOUR) AS w FROM a", "R139", "TUMBLE"),
    ("DROP VIEW a", "R103", "a"),
    ("DROP STREAM nobody", "R103", "nobody"),
]


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("SELECT STREAM v FROM a SORT BY v", "Write ORDER BY"),
        ("SELECT STREAM v FROM a TABLESAMPLE (10 PERCENT)", "WHERE PMOD(HASH(k), 10) = 0"),
        ("SELECT STREAM * FROM a PIVOT (SUM(v) FOR w IN ('x'))", "FILTER (WHERE"),
        ("SELECT STREAM v, x FROM a LATERAL VIEW EXPLODE(ARRAY(v))", "EXPLODE(ARRAY(v)) x AS tag"),
        ("SELECT STREAM EXPLODE(MAP(v, v)) AS (k, w) FROM a", "LATERAL VIEW EXPLODE(MAP(v, v)) x AS k, w"),
        ("SELECT STREAM v FROM a EMIT EVERY INTERVAL '1' HOUR", "PANES"),
        ("SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY v KEYS EXPIRE AFTER INTERVAL '1' DAY", "PARTITION BY"),
    ],
)
def test_unsupported_features_are_refused_with_an_alternative(sql: str, instead: str) -> None:
    [problem] = compile_script(A + sql).problems
    assert problem.code == "R190"
    assert instead in problem.hint


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        ("CREATE STREAM b (v INT STRICTLY ASCENDING WITHIN 9 ROWS); SELECT STREAM v FROM b", ["R140"]),
        ("CREATE STREAM b (v INT, rowtime INT, v INT); SELECT STREAM v, w FROM b", ["R209", "R209", "R103"]),
        ("CREATE STREAM b (v INTT); SELECT STREAM v FROM b; INSERT INTO b VALUES (1)", ["R101"]),
        ("CREATE OR REPLACE VIEW x AS SELCT 1; SELECT STREAM v FROM x; SELECT STREAM v FROM y", ["R101", "R103"]),
        ("CREATE STREAM b (v INT) USING fax; SELECT STREAM v FROM b GROUP BY v", ["R210", "R104"]),
    ],
)
def test_a_stream_whose_definition_is_refused_is_known_nevertheless(sql: str, codes: list[str]) -> None:
    assert [problem.code for problem in compile_script(sql).problems] == codes


@pytest.mark.parametrize(("sql", "code", "says"), REFUSED, ids=[sql[:60] for sql, _, _ in REFUSED])
def test_a_script_is_refused_with_a_code_and_a_reason(sql: str, code: str, says: str) -> None:
    problems = compile_script(A + sql).problems
    assert [problem.code for problem in problems] == [code]
    assert says in problems[0].message


UNBOUNDED = [
    ("SELECT STREAM w, COUNT(*) AS c FROM a GROUP BY w", "one for each (w)"),
    ("SELECT STREAM COUNT(*) AS c FROM a", "one in all"),
    ("SELECT STREAM w, MEDIAN(v) AS m FROM a GROUP BY w", "one for each row"),
    ("SELECT STREAM DISTINCT w, v FROM a", "one for each (w, v)"),
    ("SELECT STREAM w FROM (SELECT STREAM w, COUNT(*) AS c FROM a GROUP BY w) AS x", "query.x"),
]


@pytest.mark.parametrize(("sql", "says"), UNBOUNDED, ids=[sql[:60] for sql, _ in UNBOUNDED])
def test_unbounded_state_is_accepted_on_request_with_a_warning(sql: str, says: str) -> None:
    assert [problem.code for problem in compile_script(A + sql).problems] == ["R104"]
    program = compile_script(f"{A}{sql} WITH UNBOUNDED STATE")
    assert not program.problems
    [warning] = program.warnings
    assert (warning.code, warning.severity) == ("R185", "warning")
    assert says in warning.message


def test_the_words_change_nothing_where_state_is_bounded_and_do_not_reach_views() -> None:
    bounded = f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w"
    said, unsaid = compile_script(A + bounded + " WITH UNBOUNDED STATE"), compile_script(A + bounded)
    assert not said.warnings
    assert said.described().operators == unsaid.described().operators
    view = (
        "CREATE VIEW x AS SELECT STREAM w, COUNT(*) AS c FROM a GROUP BY w; SELECT STREAM w FROM x WITH UNBOUNDED STATE"
    )
    assert [problem.code for problem in compile_script(A + view).problems] == ["R104"]


def test_names_of_with_mean_its_queries_each_bound_once() -> None:
    sql = (
        "WITH a AS (SELECT STREAM v FROM b), x (n) AS (SELECT STREAM v FROM a) "
        "SELECT STREAM a.v FROM a UNION ALL SELECT STREAM n FROM x UNION ALL "
        "SELECT STREAM n FROM (WITH a AS (SELECT STREAM w AS n FROM b) SELECT STREAM n FROM a) AS y"
    )
    program = compile_script("CREATE STREAM b (v INT, w INT); " + sql)
    assert not program.problems
    assert columns(program) == ("v",)
    assert sum(node.name.startswith("query.a") for node in program.operators) == 1


def columns(program: Program) -> tuple[str, ...]:
    return program.sinks[-1].input.emits().names


def test_a_second_definition_may_replace_the_first_or_be_ignored() -> None:
    first = "CREATE VIEW x AS SELECT STREAM v FROM a; "
    replaced = compile_script(A + first + "CREATE OR REPLACE VIEW x AS SELECT STREAM w FROM a; SELECT STREAM * FROM x")
    kept = compile_script(A + first + "CREATE VIEW IF NOT EXISTS x AS SELECT STREAM w FROM a; SELECT STREAM * FROM x")
    assert not replaced.problems
    assert not kept.problems
    assert columns(replaced) == ("w",)
    assert columns(kept) == ("v",)


def test_a_view_renames_its_columns_and_keeps_what_closes_groups() -> None:
    sql = (
        "CREATE VIEW x (hour, n) AS SELECT STREAM FLOOR(a.ROWTIME TO HOUR) AS h, v FROM a;"
        "SELECT STREAM hour, SUM(n) AS s FROM x GROUP BY hour"
    )
    program = compile_script(A + sql)
    assert not program.problems
    assert columns(program) == ("hour", "s")


def test_a_list_of_columns_puts_the_query_in_the_order_of_the_stream() -> None:
    sql = "CREATE STREAM b (p STRING, q INT, r DOUBLE); CREATE PUMP f AS INSERT INTO b (q, P) SELECT STREAM v, w FROM a"
    program = compile_script(A + sql)
    assert not program.problems
    arranged = next(node for node in program.operators if node.name == "f.arranged")
    assert [to_spark(item.expression) for item in arranged.items] == ["`w`", "`v`", "CAST(NULL AS DOUBLE)"]  # type: ignore[attr-defined]


def test_the_plan_keeps_how_a_broker_is_reached_to_itself() -> None:
    def described(servers: str, **variables: str) -> StoredPlan:
        sql = f"""CREATE STREAM k (v INT ASCENDING) USING kafka OPTIONS (subscribe 'topic',
              kafka.bootstrap.servers '{servers}', kafka.sasl.jaas.config '${{login}}');
            SELECT STREAM v, COUNT(*) AS c FROM k GROUP BY v"""
        return compile_script(sql, variables=variables).described()

    one, other = described("one:9092", login="secret"), described("two:9092", login="hidden")
    assert one.operators == other.operators
    assert "secret" not in json.dumps(one.as_json())
    assert one.operators["k"].fields["source"] == ["kafka", [["subscribe", "topic"]]]


class Stored:
    """A home directory in memory."""

    def __init__(self, **streams: StreamDef) -> None:
        self._streams = {name: stream.as_json() for name, stream in streams.items()}

    def definition(self, name: str) -> dict[str, object] | None:
        return self._streams.get(name)

    def names(self) -> list[str]:
        return list(self._streams)

    def elsewhere(self, _name: str) -> str:
        return ""


def test_a_stream_that_was_altered_is_the_stream_of_its_definition() -> None:
    home = Stored(a=StreamDef("a", (("v", "INT"),), idle_after=5_000_000))
    again = compile_script("CREATE STREAM a (v INT); SELECT STREAM v FROM a", home)
    assert not again.problems
    assert again.defines[0].idle_after == 5_000_000
    other = compile_script("CREATE STREAM a (v INT) IDLE AFTER INTERVAL '9' SECOND; SELECT STREAM v FROM a", home)
    assert [problem.code for problem in other.problems] == ["R203"]


def test_later_statements_cannot_use_a_dropped_stream() -> None:
    home = Stored(a=StreamDef("a", (("v", "INT"),)))
    gone = compile_script("DROP STREAM a; SELECT STREAM v FROM a", home)
    assert [problem.code for problem in gone.problems] == ["R103"]
    anew = compile_script("DROP STREAM IF EXISTS a; CREATE STREAM a (w STRING); SELECT STREAM w FROM a", home)
    assert not anew.problems
    assert anew.drops == ("a",)
    assert [stream.columns for stream in anew.defines] == [(("w", "STRING"),)]


def test_the_functions_of_the_clock_become_one_time() -> None:
    sql = """CREATE VIEW x AS SELECT STREAM v, CURRENT_TIMESTAMP AS n, CURRENT_DATE AS d FROM a WHERE t < NOW();
        SELECT STREAM v FROM x UNION ALL SELECT STREAM v + 1 AS v FROM x WHERE n > CURRENT_TIMESTAMP()"""
    program = compile_script(A + sql)
    made = fixed(program, 1_704_103_200_000_000)
    text = " ".join(to_spark(i.expression) for node in made.operators for i in getattr(node, "items", ()))
    conditions = [to_spark(node.where) for node in made.operators if getattr(node, "where", None) is not None]  # type: ignore[attr-defined]
    assert "TIMESTAMP_MICROS(1704103200000000)" in text
    assert "CURRENT" not in text.upper() + " ".join(conditions).upper()
    assert not any("NOW" in condition for condition in conditions)
    assert [node.name for node in made.operators] == [node.name for node in program.operators]
    unchanged = compile_script(A + "SELECT STREAM v FROM a")
    assert fixed(unchanged, 5) is unchanged


def test_the_verdicts_of_the_case_file_are_met() -> None:
    assert verdicts.statements(load("statements.yaml")) == []


@pytest.mark.parametrize(
    ("sql", "by"),
    [
        (f"SELECT STREAM w, COUNT(*) AS c FROM a {HOURS}, w", "time"),
        ("SELECT STREAM MONOTONIC(v) AS m, COUNT(*) AS c FROM a GROUP BY MONOTONIC(v)", "values"),
        ("SELECT STREAM w, COUNT(*) AS c FROM a GROUP BY w WITH UNBOUNDED STATE", "nothing"),
    ],
)
def test_explain_says_what_limits_the_state(sql: str, by: str) -> None:
    entries = explain(compile_script(A + sql))
    assert [kept["bounded_by"] for e in entries if e["kind"] == "group by" for kept in e["keeps"]] == [by]
    assert f"(bounded by {by})" in as_text(entries)


def test_columns_that_carry_bounds_are_not_shown() -> None:
    found = explain(compile_script("CREATE STREAM s (id INT ASCENDING, v INT); SELECT STREAM id FROM s"))
    assert "__c" not in as_text(found)


def test_options_of_a_server_are_checked_before_a_start() -> None:
    columns = "hour TIMESTAMP, page STRING, n INT"
    for using, said in (
        ("jdbc OPTIONS (url 'jdbc:postgresql://h/d')", "the option dbtable is missing"),
        ("jdbc OPTIONS (url 'jdbc:postgresql://h/d', dbtable 't', key 'day')", "needs a column 'day'"),
        ("kafka OPTIONS (topic 't')", "the option kafka.bootstrap.servers is missing"),
        ("kafka OPTIONS (kafka.bootstrap.servers 'h:1', topic 't', key.columns 'day')", "needs a column 'day'"),
        ("kafka OPTIONS (kafka.bootstrap.servers 'h:1', topic 't', key.column '-page')", "needs a column '-page'"),
        ("kafka OPTIONS (kafka.bootstrap.servers 'h:1', topic 't', key.columns 'n', mode 'changes')", "'change'"),
        ("kafka OPTIONS (kafka.bootstrap.servers 'h:1', topic 't', value.format 'raw')", "needs a column 'value'"),
    ):
        script = f"CREATE STREAM a ({columns});\nCREATE STREAM o ({columns}) USING {using};\n"
        (problem,) = compile_script(f"{script}INSERT INTO o SELECT STREAM * FROM a").problems
        assert (problem.code, problem.place and problem.place.line) == ("R504", 3)
        assert said in str(problem)


S = "CREATE STREAM s (v INT, t TIMESTAMP); CREATE STREAM o (v INT); CREATE STREAM query1 (v INT);"
SORTS = "SELECT STREAM t AS ROWTIME, v FROM s ORDER BY t WITHIN INTERVAL '1' SECOND"
REFUSED_ROWS, NAMED_SO = "SELECT STREAM v FROM s.rejected;", 'SELECT STREAM v FROM "s.rejected";'
TABLE = "CREATE TABLE t (v INT) USING csv OPTIONS (path 'x'); SELECT STREAM s.v FROM s JOIN t ON s.v = t.v;"
PUMP = "CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM s;"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"CREATE STREAM p (v INT); CREATE PUMP p AS INSERT INTO o {SORTS}; SELECT STREAM v FROM p", "R209"),
        (f"{SORTS}; SELECT STREAM v FROM query1", "R209"),
        (f'CREATE STREAM "s.rejected" (v INT); {REFUSED_ROWS} {NAMED_SO}', "R209"),
        ('CREATE STREAM "query.w" (v INT); WITH w AS (SELECT STREAM v FROM s) SELECT STREAM v FROM w', "R203"),
    ],
)
def test_a_stream_is_never_mistaken_for_an_operator_of_its_name(sql: str, code: str) -> None:
    assert [problem.code for problem in compile_script(S + sql).problems] == [code]


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        (f'CREATE STREAM "s.rejected" (v INT); {NAMED_SO} {REFUSED_ROWS}', "s.rejected.2"),
        (f'{TABLE} CREATE VIEW "table t" AS SELECT STREAM v FROM s; SELECT STREAM v FROM "table t"', "table t.select"),
        (f'{PUMP} CREATE VIEW "pump p" AS SELECT STREAM v FROM s; SELECT STREAM v FROM "pump p"', "pump p.select"),
    ],
)
def test_things_with_similar_names_are_distinguished(sql: str, read: str) -> None:
    program = compile_script(S + sql)
    assert not program.problems
    assert read in [node.name for node in program.operators]


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        ("SELECT STREAM s.ROWTIME AS ROWTIME, COUNT(*) AS c FROM s GROUP BY v", ["R106", "R104"]),
        (f"SELECT STREAM nope, other.v, COUNT(*) AS c FROM s AS a {HOURS}", ["R103", "R103"]),
    ],
)
def test_problems_come_in_the_order_of_the_text_and_include_unknown_columns(sql: str, codes: list[str]) -> None:
    assert [problem.code for problem in compile_script(S + sql).problems] == codes


@pytest.mark.parametrize(("order", "says"), [("total", "SUM(v)"), ("v2 + SUM(v)", "v"), ("COUNT(*) + 1", "COUNT(*)")])
def test_a_key_that_does_not_ascend_is_named_as_in_the_query(order: str, says: str) -> None:
    items, streams = "SELECT STREAM v AS v2, SUM(v) AS total FROM s AS a", f"{HOURS}, v"
    [problem] = compile_script(f"{S}{items} {streams} ORDER BY {order}").problems
    assert (problem.code, problem.note.partition(":")[0]) == ("R138", says)
