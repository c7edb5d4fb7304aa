"""Every SQL and Python block of every page is tested: it runs, it compiles, or its calls fit the public API."""

from __future__ import annotations

import types
from unittest.mock import MagicMock, create_autospec

import pytest

import rowtime as rt
from tests.docs.test_docs import PAGES, ROOT, SCRIPTS, SQL_PAGES, blocks
from tests.docs.test_page_outputs import OUTPUTS

RUN = ("README.md", *OUTPUTS.PAGES)
"""Pages whose Python `test_docs`, `test_first_screen` and `test_page_outputs` run."""
# They need a cluster, a broker, a store or a registry of metrics.
FRAGMENTS = ("docs/clusters.md", "docs/kafka.md", "docs/observing.md", "docs/stores.md")
SQL_ELSEWHERE = ("docs/lifetimes.md", "docs/debezium.md", "docs/schema-registry.md")
"""Pages whose SQL `test_docs`, `tests/kafka/test_debezium.py` and the tests of the schema registry use.

The blocks that `test_page_outputs` leaves out need a broker, a registry or a bucket, or only define streams.
"""


@pytest.mark.parametrize("kind", ["python", "sql"])
def test_no_block_is_left_out(kind: str) -> None:
    known = {*RUN, *FRAGMENTS} if kind == "python" else {*SCRIPTS, *SQL_PAGES, *SQL_ELSEWHERE}
    pages = {str(page.relative_to(ROOT)) for page in PAGES if blocks(str(page.relative_to(ROOT)), kind)}
    assert pages <= known


@pytest.mark.parametrize("page", FRAGMENTS)
def test_the_calls_of_a_fragment_fit_the_public_api(page: str) -> None:
    names = stand_ins()
    for code in blocks(page, "python"):
        exec(compile(code.replace(".sql(…)", ""), page, "exec"), names)  # noqa: S102 - as above


@pytest.mark.parametrize("call", ["pipeline.starts('c')", "query.stop(1, 2, 3)", "rt.Metric(1)"])
def test_a_call_that_does_not_exist_is_found(call: str) -> None:
    with pytest.raises((AttributeError, TypeError)):
        exec(call, stand_ins())  # noqa: S102 - a planted fault


def stand_ins() -> dict[str, object]:
    """Return the names that fragments use, with the methods and arguments of the public API, and no effect."""
    query, pipeline = (create_autospec(kind, instance=True) for kind in (rt.Query, rt.Pipeline))
    pipeline.sql.return_value = pipeline.source.return_value = pipeline
    pipeline.start.return_value = query
    public = types.SimpleNamespace(**{name: create_autospec(getattr(rt, name)) for name in rt.__all__})
    public.Pipeline.return_value = pipeline
    others = dict.fromkeys(("SparkSession", "checkpoint", "one", "two", "registry", "text", "streaming_df", "spark"))
    return {
        **others, "SparkSession": MagicMock(), "StreamingQueryListener": object, "rt": public,
        "pipeline": pipeline, "query": query, "first": pipeline, "second": pipeline,
    }  # fmt: skip
