"""Secrets are in no message, EXPLAIN, definition or plan, wherever a script has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import rowtime as rt
from rowtime.client.home import Home
from rowtime.core.secrets import Secrets, is_secret, kept, shown
from rowtime.core.starred_sql import starred
from rowtime.plan.explain import as_text, explain
from rowtime.plan.formats import FORMATS, is_known
from rowtime.plan.program import Program, compile_script
from rowtime.plan.upgrade import upgrade_of
from rowtime.web.views.explained import Explained

VARIABLES = {"pw": "Var1Zw", "jaas_pw": "Var2Zw", "store": "Var3Zw", "token": "Var4Zw"}
SCRIPT = """CREATE STREAM clicks (page STRING, at TIMESTAMP) USING kafka OPTIONS (
  kafka.bootstrap.servers 'localhost:1', subscribe 'clicks', kafka.ssl.keystore.key 'Lit1Zw
  over two lines Lit2Zw', kafka.sasl.jaas.config 'x username="u" password="${jaas_pw}" clientSecret="Lit3Zw";',
  kafka.ssl.key.password 'Lit4Zw', kafka.ssl.keystore.password '${store}');
CREATE STREAM latest (hour TIMESTAMP, n BIGINT) USING jdbc OPTIONS (
  url 'jdbc:postgresql://h/db?user=u&password=Lit5Zw&sslpassword=${pw}', user 'me', password '${pw}', dbtable 'latest',
  sslpassword 'Lit6''Zw', sslkey 'Lit7Zw', key 'hour');
CREATE TABLE pages (page STRING) USING jdbc OPTIONS (
  url 'jdbc:mysql://u:Lit8Zw@h/db', accessToken '${token}', passphrase 'Lit9Zw', dbtable 't', driver 'd');
INSERT INTO latest SELECT STREAM FLOOR(c.ROWTIME TO HOUR) AS hour, COUNT(*) AS n
  FROM clicks AS c JOIN pages AS p ON c.page = p.page GROUP BY FLOOR(c.ROWTIME TO HOUR);
"""


def compiled(text: str = SCRIPT, variables: dict[str, str] = VARIABLES, home: Home | None = None) -> Program:
    return compile_script(text, home, variables)


def secrets_in(text: str) -> list[str]:
    return [one for one in (*VARIABLES.values(), *(f"Lit{n}" for n in range(1, 10))) if one in text]


def test_the_script_and_its_plan_have_no_secrets() -> None:
    program = compiled()
    assert program.problems == ()
    assert secrets_in(json.dumps(program.described().as_json())) == []
    assert secrets_in("".join(json.dumps(stream.as_json()) for stream in program.defines)) == []
    assert secrets_in(repr(program.secrets)) == []


def test_explain_shows_none_as_text_and_as_json() -> None:
    entries = explain(compiled())
    assert secrets_in(as_text(entries)) == []
    assert secrets_in(json.dumps(entries)) == []
    assert "dbtable 'latest'" in as_text(entries)
    assert "subscribe 'clicks'" in as_text(entries)


REGISTRY = """CREATE STREAM s (a STRING) USING kafka OPTIONS (
  kafka.bootstrap.servers 'h:1', subscribe 't', format 'avro',
  schema.registry.url 'https://u:Lit1Zw@h', schema.registry.basic.auth.user.info 'me:{secret}',
  schema.registry.bearer.auth.token 'Lit3Zw'); SELECT STREAM a FROM s"""


@pytest.mark.parametrize("secret", ["Lit2Zw", "${pw}"])
def test_a_schema_registry_has_secrets(secret: str) -> None:
    program = compiled(REGISTRY.format(secret=secret))
    assert program.problems == ()
    shown_to_all = json.dumps([explain(program), program.written, program.described().as_json()])
    shown_to_all += repr([program.secrets, program.defines[0].as_json()])
    assert secrets_in(shown_to_all) == []
    assert "'me:${" in program.written
    given = dict(program.streams[0].source[1])
    assert given["schema.registry.basic.auth.user.info"] in ("me:Lit2Zw", "me:Var1Zw")
    broken = REGISTRY.format(secret=secret).replace("SELECT", "SELEC")
    assert secrets_in(str(compiled(broken).problems)) == []


def test_a_caret_points_at_the_variable() -> None:
    text = (
        "CREATE STREAM o (s STRING) USING jdbc OPTIONS (url 'jdbc:postgresql:x', password '${pw}', dbtabel 't', mod 1)"
    )
    first, second = rt.check(text, variables={"pw": "long" * 9})
    assert first.place.text == second.place.text == text.replace("'t', mod 1", "'*', mod *")
    assert text[first.place.column - 1 :].startswith("dbtabel")
    assert text[second.place.column - 1 :].startswith("mod")


@pytest.mark.parametrize(
    "end",
    [
        "dbtabel 't')",
        "dbtable 't', ${pw} 'x')",
        "password 'Lit1Zw', dbtable 't', passwd 'Lit2Zw', pass = 'Lit3Zw')",
        "dbtable '${pw}'); SELECT STREAM ${pw} FROM o",
        "dbtable 't'); SELECT STREAM s + '${pw}' AS x FROM o GROUP BY '${pw}', s || '${token}'",
        "pwd 'Lit4Zw",
        "mode 't', secret 123456 ${pw}",
        "driver '${token}', url 'jdbc:x:?token=Lit5Zw')",
    ],
)
def test_no_problem_of_a_faulty_script_has_one(end: str) -> None:
    text = f"CREATE STREAM o (s STRING) USING jdbc OPTIONS (url 'jdbc:postgresql:x?sslpassword=Lit6Zw', {end}"
    found = rt.check(text, variables=VARIABLES)
    assert found
    said = "".join(f"{problem} {json.dumps(problem.as_json())}" for problem in found)
    assert secrets_in(said) == []
    assert "123456" not in said


def test_a_rotated_password_is_the_same_stream_and_the_same_plan(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first = compiled(home=home)
    for stream in first.defines:
        home.define(stream.name, stream.as_json(), replace=True)
    rotated = SCRIPT
    for number in range(1, 10):
        rotated = rotated.replace(f"Lit{number}", f"New{number}")
    second = compiled(rotated, dict.fromkeys(VARIABLES, "Other"), home)
    assert second.problems == ()
    assert second.described() == first.described()
    assert upgrade_of(first.described(), second) is None
    (problem,) = compiled(rotated.replace("subscribe 'clicks'", "subscribe 'others'"), home=home).problems
    assert problem.code == "R203"


def test_another_script_gives_the_secrets_that_the_home_does_not_keep(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for stream in compiled(home=home).defines:
        home.define(stream.name, stream.as_json(), replace=True)
    reads = "SELECT STREAM page FROM clicks"
    problems = compile_script(reads, home, {}).problems
    assert {problem.code for problem in problems} == {"R543"}
    assert all(problem.place is not None and problem.place.column == 25 for problem in problems)
    needed = {problem.hint.split("--set ")[1].split("=")[0] for problem in problems}
    assert "store" in needed
    assert "secret_clicks_kafka_ssl_key_password" in needed
    given = compile_script(reads, home, dict.fromkeys(needed, "Given"))
    assert given.problems == ()
    options = dict(given.catalog.streams["clicks"].options)
    assert options["kafka.ssl.keystore.password"] == options["kafka.ssl.key.password"] == "Given"
    assert 'password="Given"' in options["kafka.sasl.jaas.config"]


def test_the_script_that_a_checkpoint_keeps_compiles_with_the_secrets_of_the_new_one() -> None:
    program = compiled()
    again = compile_script(program.written, None, {**program.literal, **VARIABLES})
    assert again.problems == ()
    assert [stream.options for stream in again.defines] == [stream.options for stream in program.defines]
    assert again.described() == program.described()


def test_names_of_options_say_what_is_secret() -> None:
    hidden = (
        "password sslpassword passphrase pwd kafka.ssl.keystore.key kafka.sasl.jaas.config accessToken client_secret"
    )
    plain = "key key.columns path header subscribe kafka.bootstrap.servers kafka.ssl.keystore.location user dbtable"
    hidden += " catalog.header.authorization catalog.s3.access-key-id catalog.s3.secret-access-key catalog.token"
    assert [is_secret(name) for name in hidden.split()] == [True] * 12
    assert [name for name in plain.split() if is_secret(name)] == []


def test_parts_of_urls_are_secret() -> None:
    for url in ("jdbc:x://u:Zw@h/d", "jdbc:x://h?ssl=1&password=Zw&user=2", "jdbc:sqlserver://h;password=Zw;user=1",
                "jdbc:oracle:thin:u/Zw@h"):  # fmt: skip
        assert shown("url", url, is_known) == url.replace("Zw", "…")
        assert kept("s", "url", url) == (url.replace("Zw", "${secret_s_url}"), {"secret_s_url": "Zw"})
        assert starred(f"url '{url}'", is_known) == f"url '{url.replace('Zw', '**')}'"


@pytest.mark.parametrize(
    "before",
    [
        "dbtable 'secrets', ",
        "dbtable 'the tokens', subscribe 'pwd', ",
        "dbtable 'password ",
        "'secret' = 'a', b 'token' ",
    ],
)
def test_a_value_that_looks_like_a_secrets_name_does_not_expose_the_next_one(before: str) -> None:
    """A table named secrets was taken for the name of an option, up to the quote before the password."""
    found = starred(f"OPTIONS ({before}password 'GeheimZw', sslpassword 'AuchZw')", is_known)
    assert "Zw" not in found
    assert found.endswith("'********', sslpassword '******')") or before.count("'") % 2


def test_longer_secrets_are_hidden_before_those_that_are_parts_of_them() -> None:
    secrets = Secrets.of(
        [("password", "geheim"), ("sslpassword", "geheimer"), ("pwd", "abc")], {"pw": "anderes"}, is_known
    )
    assert secrets.hide("geheimer geheim abc anderes") == "… … abc ${pw}"


BESIDE = {
    "kafka": "kafka.bootstrap.servers 'localhost:1', subscribe 'clicks'",
    "jdbc": "url 'jdbc:postgresql://h/db', dbtable 't'",
    "iceberg": "catalog 'c', table 'a.b'",
}
MARK = "Geheim7Zw"


def misspelt(name: str) -> Iterator[str]:
    """Names that a typo makes of an option."""
    at = len(name) // 2
    yield from (name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:], name[:-1], f"{name}s", f"x{name}")


def all_said(text: str, folder: Path) -> str:
    """Everything that people are shown of a script that nobody runs."""
    program = compile_script(text, None, {})
    found = "".join(f"{p} {json.dumps(p.as_json())}" for p in (*program.problems, *program.warnings))
    found += f"{as_text(explain(program))} {json.dumps(explain(program))} {program.secrets!r}"
    opened = Explained(program.described(), Home(folder), {})
    for stored_only in (False, True):
        opened.entries = {} if stored_only else opened.entries
        found += "".join(f"{opened.terms(n)} {opened.script(n)}" for n in program.described().operators)
    return found + opened.problem


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_the_value_of_a_misspelt_option_is_shown_nowhere(kind: str, tmp_path: Path) -> None:
    names = {name for option in FORMATS[kind].options for name in misspelt(option)}
    names |= {name for secret in ("password", "accessToken", "secret") for name in misspelt(secret)}
    known = {name for form in FORMATS.values() for name in form.options}
    exposed = []
    for number, name in enumerate(sorted(names - known)):
        form = ("{} '{}'", "\"{}\" = '{}'", "'{}' = '{}'")[number % 3].format(name, MARK)
        before = f"{BESIDE[kind]}, " if kind in BESIDE else ""
        statement = f"CREATE STREAM s (x BIGINT)\n USING {kind} OPTIONS ({before}{form}, {name}2 7123454321);\n"
        statement += "SELECT STREAM x FROM s"
        changes = [("x", "x"), ("x BIGINT", "x BIGNT"), (");\n", ";\n"), ("OPTIONS", "OPTOINS")]
        changes += [("STREAM s", "STRAEM s"), ("USING", "USNG"), (f"{MARK}'", MARK)]
        text = statement.replace(*changes[number % len(changes)])
        said = all_said(text, tmp_path)
        exposed += [text] if MARK in said or "7123454321" in said else []
    assert exposed == []


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:postgresql://h/db?user=u&pasword=Geheim7Zw",
        "jdbc:postgresql://u:Gehe@im7Zw@h/db",
        "jdbc:other://h/path?sv=1&sig=Geheim7Zw&se=2",
        "jdbc:other://h/p?X-Amz-Signature=Geheim7Zw",
        "jdbc:sqlserver://h;databaseName=d;pasword=Geheim7Zw",
    ],
)
def test_secrets_in_urls_are_shown_nowhere(url: str, tmp_path: Path) -> None:
    text = f"CREATE STREAM o (x BIGINT) USING jdbc OPTIONS (url '{url}', dbtable 't'); CREATE STREAM s (x BIGINT);"
    text += "INSERT INTO o SELECT STREAM x FROM s"
    for script in (text, text.replace("dbtable", "dbtabel"), text.replace("SELECT", "SELEC")):
        assert "im7Zw" not in all_said(script, tmp_path), script


@pytest.mark.parametrize(
    "options",
    [
        "USING jdbc OPTIONS (password {0}, pasword {0})",
        "USING jdbc OPTIONS (pasword = {0} {0}, url 'x')",
        'USING jdbc OPTIONS (password "{0}", pasword "{0}", url "jdbc:postgresql://h/d?password={0}")',
        "WITH (connector='jdbc', pasword='{0}')",
        "WITH ('pasword' = {0}, `pasword` `{0}`)",
    ],
)
@pytest.mark.parametrize("makes", ["CREATE STREAM s (x BIGINT)", "CREATE TABLE s", "CREATE SINK s"])
def test_values_in_a_form_that_does_not_parse_are_shown_nowhere(makes: str, options: str, tmp_path: Path) -> None:
    text = f"{makes} {options.format(MARK)};\nCREATE STREAM o (n INT); SELECT STREAM nosuch FROM o"
    assert rt.check(text)
    assert MARK not in all_said(text, tmp_path)


def test_values_that_hold_no_secret_are_shown_where_the_error_is() -> None:
    text = (
        "CREATE STREAM s (page STRING CHECK (page <> 'tea' AND length(page) > 3), d DECIMAL(10, 2), n INT) USING csv "
        "OPTIONS (path '/data/in', header 'true', modee 'x'); SELECT STREAM nosuch FROM s WHERE page = 'coffee'"
    )
    for problem in rt.check(text):
        assert problem.place is not None
        assert problem.place.text == text.replace("'x'", "'*'")


def test_a_table_of_any_format_of_spark_shows_what_is_known(tmp_path: Path) -> None:
    text = (
        "CREATE STREAM s (x BIGINT); CREATE TABLE t (x BIGINT) USING snowflake OPTIONS (path '/a/b', sfUzer 'me', "
        "sfPwrd 'Geheim7Zw'); SELECT STREAM s.x FROM s JOIN t ON s.x = t.x"
    )
    program = compile_script(text)
    assert program.problems == ()
    assert "path '/a/b'" in as_text(explain(program))
    assert MARK not in all_said(text, tmp_path)
    assert program.secrets.hide("the driver says Geheim7Zw") == "the driver says …"
