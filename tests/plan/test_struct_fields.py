"""Fields of structs with a declared type: `check` knows them."""

from __future__ import annotations

import pytest

from rowtime.plan.check import check

GIVEN = """CREATE STREAM a (
    u STRUCT<id: INT, Name: STRING, st: STRUCT<b: INT>>, items ARRAY<STRUCT<sku: STRING, part: STRUCT<n: INT>>>,
    m MAP<STRING, STRUCT<x: INT>>, js STRING, v INT, x INT, `odd name` STRUCT<`a b`: INT>
  );
  CREATE STREAM b (u STRUCT<other: INT>, v INT);
  """
JOINED = "FROM a JOIN b ON a.v = b.v AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '1' MINUTE"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM u.id, u.name, a.u.st.b, u.ST.B AS c FROM a",
        "SELECT STREAM items.sku, items[0].sku AS first, items.part.n AS n, items[1].part.n AS m FROM a",
        "SELECT STREAM m.k AS k, m.k.x AS x, m['k'].x AS y FROM a",
        "SELECT STREAM `odd name`.`a b` FROM a",
        "SELECT STREAM TRANSFORM(items, x -> x.sku) AS skus FROM a",  # x is no column here
        "SELECT STREAM FROM_JSON(js, 'a INT').b AS b FROM a",  # only Spark knows this type
        f"SELECT STREAM a.u.id, b.u.other {JOINED}",
    ],
)
def test_fields_of_the_declared_type_are_accepted(query: str) -> None:
    assert list(check(GIVEN + query)) == []


@pytest.mark.parametrize(
    ("query", "written", "what"),
    [
        ("SELECT STREAM u.nme FROM a", "nme", "there is no field nme in u"),
        ("SELECT STREAM a.u.st.c FROM a", "c", "there is no field c in u.st"),
        ("SELECT STREAM v FROM a WHERE u.st.c > 1", "c", "there is no field c in u.st"),
        ("SELECT STREAM items.part.m FROM a", "m", "there is no field m in items.part"),
        ("SELECT STREAM items[0].skuu FROM a", "skuu", "there is no field skuu in `items`[0]"),
        ("SELECT STREAM m.k.y FROM a", "y", "there is no field y in m.k"),
        ("SELECT STREAM v.x FROM a", "x", "v has no fields: its type is INT"),
        (f"SELECT STREAM b.u.id {JOINED}", "id", "there is no field id in b.u"),
    ],
)
def test_other_fields_are_refused_where_they_are_written(query: str, written: str, what: str) -> None:
    (problem,) = check(GIVEN + query)
    assert (problem.code, problem.message) == ("R103", what)
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1 :].startswith(written)
