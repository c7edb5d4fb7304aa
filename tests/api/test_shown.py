"""What notebooks show: static HTML, made without Spark, in which text from the data is only text."""

from __future__ import annotations

import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.api import shown as shown_by
from rowtime.api.shown import Ledger, Waits
from rowtime.audit.traced import Trace, Traced
from rowtime.core import markup
from rowtime.plan.waiting import Wait

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTILE = "<script>alert(1)</script>"
SQL = f"""CREATE STREAM "{HOSTILE}" (v INT); CREATE STREAM b (v INT);
SELECT STREAM v FROM "{HOSTILE}" UNION ALL SELECT STREAM v FROM b"""
WAIT = Wait("query.group", "group by", 3, "2024-01-01 00:01:30", HOSTILE, "<b>", "send a row")


def shown(value: Any) -> str:
    """The HTML of a value; it is well-formed and has no scripts or markup from the data."""
    html: str = value._repr_html_()
    tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(f"<div>{html}</div>").iter()}  # noqa: S314 - what it reads is ours
    assert not tags & {"script", "b", "img", "style", "foreignObject"}
    return html


def test_a_pipeline_shows_its_graph_from_streams_to_outputs(tmp_path: Path) -> None:
    made = rt.Pipeline(home=tmp_path).sql(SQL)
    html = shown(made)
    root = ET.fromstring(html)  # noqa: S314 - what it reads is ours
    boxes = [title.text or "" for title in root.iter("{http://www.w3.org/2000/svg}title")]
    plan = made.compile().described()
    assert boxes == [f"{name} ({one.kind})" for name, one in plan.operators.items()]
    paths = [*root.iter("{http://www.w3.org/2000/svg}path")]
    assert len(paths) == sum(len(one.inputs) for one in plan.operators.values())
    for path in paths:  # each edge leads to the next operator on the right
        first, last = path.get("d", "").split(" m")[0].replace("M", "").split(" C")
        assert int(first.split(",")[0]) < int(last.split(" ")[-1].split(",")[0])
    assert "&lt;script&gt;" in html


def test_a_pipeline_with_problems_shows_them_with_their_caret(tmp_path: Path) -> None:
    html = shown(rt.Pipeline(home=tmp_path).sql(f"CREATE STREAM a (v INT); SELECT STREAM '{HOSTILE}', w FROM a"))
    assert "R103" in html
    assert "^" in html
    assert "without a query" in shown(rt.Pipeline(home=tmp_path))


def test_problems_explain_waits_ledgers_and_traces_show_their_text(tmp_path: Path) -> None:
    problems = rt.check("SELECT STREAM w FROM nowhere")
    assert "R103" in shown(problems)
    assert shown(problems[0]) in shown(problems)
    assert "no problems" in shown(rt.check("CREATE STREAM a (v INT)"))
    assert "requires" in shown(rt.Pipeline(home=tmp_path).sql(SQL).explain())
    assert "query.group holds 3 open groups" in shown(Waits([WAIT]))
    assert "nothing waits" in shown(Waits())
    ledger = shown(Ledger({"<b>": {"in": 12_000, "accepted": 11_999, "LATE": 1}}))
    assert ">12,000</td>" in ledger
    assert ">LATE</th>" in ledger
    item = Traced("a", 0, "row", 0, columns={"v": HOSTILE, "w": None})
    trace = shown(Trace("query.sink", 3, (item,), {"a": "stream"}, ("a",)))
    for part in ("row 3 of query.sink", "a (stream)", "NULL", "more than 10,000 rows"):
        assert part in trace


def test_a_long_table_says_how_many_rows_it_leaves_out() -> None:
    assert markup.table(["n"], ([n] for n in range(markup.MOST + 5))).endswith("… 5 more</div>")
    assert markup.text("\ud800 & <") == "? &amp; &lt;"


@pytest.mark.parametrize("kernel", [True, False], ids=["notebook", "terminal"])
def test_in_a_notebook_the_display_of_a_query_is_updated(monkeypatch: pytest.MonkeyPatch, *, kernel: bool) -> None:
    import IPython
    import IPython.display

    seen: list[str] = []
    ends = iter([False, False, True])
    over = threading.Event()

    def show(bundle: dict[str, str], **_: Any) -> SimpleNamespace:
        seen.append(bundle["text/html"])
        return SimpleNamespace(
            update=lambda bundle, **_: seen.append(bundle["text/html"]) or len(seen) < 4 or over.set()
        )

    pages = iter(["begins", "one", "two", "ended"])
    monkeypatch.setattr(IPython.display, "display", show)
    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=1) if kernel else SimpleNamespace())
    monkeypatch.setattr(shown_by, "query_page", lambda _: next(pages))
    shown_by.follow(SimpleNamespace(isActive=True, ended=lambda _: next(ends)))  # type: ignore[arg-type]
    assert over.wait(30 if kernel else 0.1) == kernel
    assert seen == (["begins", "one", "two", "ended"] if kernel else ["begins"])


def test_showing_a_pipeline_loads_no_spark(tmp_path: Path) -> None:
    code = f"""import sys, rowtime as rt
html = rt.Pipeline(home={str(tmp_path)!r}).sql("CREATE STREAM a (v INT); SELECT STREAM v FROM a")._repr_html_()
assert "<svg" in html
assert "py4j.java_gateway" not in sys.modules or __import__("pyspark").SparkContext._gateway is None"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_query_shows_its_numbers(spark: SparkSession, tmp_path: Path) -> None:
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(
        "CREATE STREAM a (v INT); SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"
    )
    made.run_available(tmp_path / "c")  # this defines the stream
    with rt.writer("a", home=tmp_path / "home", writer=HOSTILE) as log:
        log.insert([{"rowtime": "2024-01-01 00:00:01", "v": 7}, {"rowtime": "2024-01-01 00:00:02", "v": 8}])
    query = made.run_available(tmp_path / "c")
    html = shown(query)
    for part in (
        f"Stopped, tick {query.engine.entry['tick']}",
        '<td style="text-align:left">a</td><td style="text-align:right">2</td>',
        "query",
    ):
        assert part in html
    assert "&lt;script&gt;" in html
    assert query.ledger["a"]["in"] == 2
