"""The home directory: names, definitions, and what can prevent both."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowtime as rt
from rowtime.client.arrow_types import arrow_schema, arrow_type
from rowtime.client.file_names import escape, unescape
from rowtime.client.home import Home
from rowtime.core.errors import Failure, Refused

BIDS: dict[str, Any] = {"columns": [{"name": "price", "type": "INT", "nullable": True}], "format": None, "options": {}}
ASKS: dict[str, Any] = {
    "columns": [{"name": "price", "type": "DECIMAL(10, 2)", "nullable": False}],
    "format": None,
    "options": {},
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def code(caught: pytest.ExceptionInfo[Refused] | pytest.ExceptionInfo[Failure]) -> str:
    return caught.value.problems[0].code


def test_a_definition_is_found_again_whatever_the_case_of_the_name(home: Home) -> None:
    home.define("Bids", BIDS)
    assert Home(home.path).definition("BIDS") == BIDS
    assert home.names() == ["bids"]
    assert home.log_path("Bids") == home.log_path("bids")


def test_a_home_that_does_not_exist_is_empty_and_reading_does_not_create_it(home: Home) -> None:
    assert home.names() == []
    assert home.definition("bids") is None
    assert home.drop("bids") is False
    assert not home.path.exists()


def test_the_same_definition_again_changes_nothing_and_another_is_refused(home: Home) -> None:
    home.define("bids", BIDS)
    home.define("bids", BIDS)
    with pytest.raises(Refused) as caught:
        home.define("BIDS", ASKS)
    assert code(caught) == "R203"
    assert home.definition("bids") == BIDS


def test_replace_changes_a_definition(home: Home) -> None:
    home.define("bids", BIDS)
    home.define("bids", ASKS, replace=True)
    assert home.definition("bids") == ASKS


def test_of_many_concurrent_definitions_one_wins_and_nothing_is_left_behind(home: Home) -> None:
    def attempt(number: int) -> bool:
        try:
            home.define("bids", {**BIDS, "options": {"number": str(number)}})
        except Refused:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(24))) == 1
    assert len(list((home.path / "streams").iterdir())) == 1


def test_drop_removes_the_definition_and_the_log(home: Home) -> None:
    home.define("bids", BIDS)
    (home.log_path("bids") / "main").mkdir(parents=True)
    assert home.drop("Bids") is True
    assert home.names() == []
    assert list((home.path / "logs").iterdir()) == []


def test_the_home_is_private_to_its_owner(home: Home) -> None:
    home.define("bids", BIDS)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (home.path, home.path / "streams", home.path / "logs")}
    assert modes == {0o700}


def test_the_environment_names_the_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROWTIME_HOME", str(tmp_path / "elsewhere"))
    assert Home().path == tmp_path / "elsewhere"
    assert Home(tmp_path / "here").path == tmp_path / "here"
    monkeypatch.delenv("ROWTIME_HOME")
    monkeypatch.chdir(tmp_path)
    assert Home().path == tmp_path / ".rowtime"


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "a/b", ".hidden", "a b", "naïve", "100%", "%2e"])
def test_no_name_leaves_the_home(home: Home, name: str) -> None:
    home.define(name, BIDS)
    assert [path.parent for path in home.path.rglob("*.json")] == [home.path / "streams"]
    assert home.log_path(name).resolve().parent == home.path.resolve() / "logs"
    assert home.names() == [name]


@pytest.mark.parametrize("name", ["", "x" * 300, "ä" * 60, "\ud800"])
def test_a_name_that_fits_no_file_is_refused(home: Home, name: str) -> None:
    with pytest.raises(Refused) as caught:
        home.define(name, BIDS)
    assert code(caught) == "R207"


@given(st.text(min_size=1, max_size=16).filter(lambda text: text.isprintable()))
def test_escaping_loses_nothing(name: str) -> None:
    assert unescape(escape(name)) == name
    assert set(escape(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-%ABCDEF")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param('{"columns": [{"name": "\\ud800", "type": "INT"}]}', id="a name that is no text"),
    ],
)
def test_a_broken_definition_is_a_failure_that_names_the_file(home: Home, text: str) -> None:
    home.define("bids", BIDS)
    (home.path / "streams" / "bids.json").write_text(text)
    with pytest.raises(Failure, match=r"bids\.json") as caught:
        home.definition("bids")
    assert code(caught) == "R501"


def test_a_changed_definition_was_read_as_another_one(home: Home) -> None:
    home.define("bids", BIDS)
    path = home.path / "streams" / "bids.json"
    assert home.definition("bids") == BIDS
    path.write_text(path.read_text().replace('"nullable": true', '"nullable": false', 1))
    with pytest.raises(
        Failure, match=r"R501 .*bids\.json cannot be used: it has changed since rowtime wrote it"
    ) as caught:
        home.definition("bids")
    assert code(caught) == "R501"
    assert "Restore the file from a copy; or delete it" in str(caught.value)
    path.unlink()
    home.define("bids", BIDS)
    assert home.definition("bids") == BIDS


def test_a_definition_of_an_older_version_has_no_checksum(home: Home) -> None:
    home.define("bids", BIDS)
    (home.path / "streams" / "bids.json").write_text(json.dumps(BIDS))
    assert home.definition("bids") == BIDS
    home.define("bids", BIDS)


def test_an_invalid_order_is_a_broken_definition(home: Home) -> None:
    home.define("bids", {"columns": [{"name": "v", "type": "INT"}], "orders": [["v", "INT", "NOT NULL"]]})
    problems = rt.check("SELECT STREAM v FROM bids", home=home)
    assert [problem.code for problem in problems] == ["R501"]


def test_a_home_that_cannot_be_made_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failure) as caught:
        Home(tmp_path / "file" / "home").define("bids", BIDS)
    assert code(caught) == "R501"


UTC = pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("boolean", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("smallint", pa.int16()),
        ("Integer", pa.int32()),
        ("LONG", pa.int64()),
        ("real", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("DECIMAL", pa.decimal128(10, 0)),
        ("decimal(5)", pa.decimal128(5, 0)),
        ("NUMERIC( 38 , 10 )", pa.decimal128(38, 10)),
        ("VARCHAR(20)", pa.string()),
        ("BINARY", pa.binary()),
        ("DATE", pa.date32()),
        ("TIMESTAMP", UTC),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("ARRAY<MAP<STRING,TIMESTAMP>>", pa.list_(pa.map_(pa.string(), UTC))),
        (
            "struct<a: int not null comment 'x, y', `b ``c`: array<double>, d date>",
            pa.struct(
                [pa.field("a", pa.int32(), nullable=False), ("b `c", pa.list_(pa.float64())), ("d", pa.date32())]
            ),
        ),
    ],
)
def test_types_are_parsed_like_in_spark(text: str, expected: pa.DataType) -> None:
    assert arrow_type(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", "MONEY", "INT INT", "DECIMAL(39)", "DECIMAL(2,3)", "DECIMAL(5,2,0)", "DECIMAL()", "ARRAY", "ARRAY<INT",
     "MAP<INT>", "STRUCT<>", "STRUCT<a: INT,>", "a;b", "VARCHAR(2147483648)"],
)  # fmt: skip
def test_text_that_is_not_a_type_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        arrow_type(text)
    assert code(caught) == "R208"


def test_the_schema_of_a_definition_keeps_names_and_nullability() -> None:
    assert arrow_schema(ASKS) == pa.schema([pa.field("price", pa.decimal128(10, 2), nullable=False)])
