"""The scripts whose plans are stored in golden files: those of every transcript, example and law."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from examples.nexmark.queries import FOLDER as NEXMARK
from examples.nexmark.queries import QUERIES
from rowtime.testing.transcripts import load
from rowtime.testing.verdicts import judge_of
from tests import event_cases, streams_queries
from tests.laws.as_of_pipelines import AS_OF
from tests.laws.buffer_pipelines import BUFFERS
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.guard_pipelines import GUARDS
from tests.laws.join_pipelines import JOINS
from tests.laws.lifetime_pipelines import LIFETIMES
from tests.laws.match_pipelines import MATCHES
from tests.laws.over_pipelines import OVER
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, transcript
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.speculation_pipelines import SPECULATION

ROOT = Path(__file__).parents[2]
TRANSCRIPTS = ROOT / "tests" / "transcripts"
PLACES = {"events": "events", "output": "output"}


class Script(NamedTuple):
    """A script, and the values of its variables."""

    text: str
    variables: Mapping[str, str] = {}


@cache
def scripts() -> dict[str, Script]:
    """Each script by the path of its golden file, without the suffix."""
    return {name: script for part in (_transcripts(), _lists(), _examples(), _laws()) for name, script in part}


def _transcripts() -> Iterator[tuple[str, Script]]:
    for path in sorted(TRANSCRIPTS.rglob("*.yaml")):
        if path.name != "queries.yaml" and not judge_of(path):
            yield f"transcripts/{path.stem}", Script(load(path).sql)


def _lists() -> Iterator[tuple[str, Script]]:
    for case in (*event_cases.load("streaminsight"), *event_cases.load("trill")):
        yield f"transcripts/{case.name}", Script(case.transcript.sql)
    for name, text in streams_queries.PANES.items():
        yield f"transcripts/{name}", Script(text)


def _examples() -> Iterator[tuple[str, Script]]:
    streams = (NEXMARK / "streams.sql").read_text(encoding="utf-8")
    for query in QUERIES:
        yield f"examples/nexmark_{query}", Script(streams + (NEXMARK / f"{query}.sql").read_text("utf-8"), PLACES)
    for path in sorted((ROOT / "examples/from_sqlstream").glob("*.yaml")):
        yield f"examples/from_sqlstream_{path.stem}", Script(load(path).sql)
    yield "examples/card_tests", Script(load(ROOT / "examples/row_patterns/card_tests.yaml").sql)
    yield "examples/flights", Script((ROOT / "examples/flights/flights.sql").read_text("utf-8"), PLACES)


def _laws() -> Iterator[tuple[str, Script]]:
    for law in (*LAWS, *AS_OF, *BUFFERS, *DEEPER, *GUARDS, *JOINS, *MATCHES, *OVER, *PANES, *SESSIONS, *SORTED):
        yield f"laws/{_file(law.name)}", Script(transcript(law, ()).sql)
    for law in (*LIFETIMES, *SPECULATION):
        yield f"laws/{_file(law.name)}", Script(law.transcript(()).sql)


def _file(name: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in name).split())
