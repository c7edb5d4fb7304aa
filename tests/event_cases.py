"""Event lists of other systems (JSON) as transcripts: the input is unchanged, the query is written by hand.

One unit of time of a list is a microsecond, so a point lasts one unit. `queries.yaml` beside the lists has the script
of each, and settings if a list needs other ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from rowtime.core.time import END, to_micros
from rowtime.testing.transcripts import Safe, ScriptItem, Transcript

FOLDER = Path(__file__).parent / "transcripts"
DECLARE = (
    "CREATE STREAM {name} (kind STRING, start TIMESTAMP, stop TIMESTAMP{columns}) "
    "EVENT SHAPE BY kind (start, stop){more}; "
)


@dataclass(frozen=True)
class EventCase:
    """One list with one query: the input and the expected result."""

    name: str
    case: Mapping[str, Any]
    query: Mapping[str, Any]

    @property
    def transcript(self) -> Transcript:
        """The list as a transcript of the query."""
        items = tuple(self._items())
        names = sorted({item.stream for item in items} | set(self.query.get("streams", {})))
        declared = "".join(self._declared(name) for name in names)
        sql = declared + self.query["sql"]
        return Transcript(self.name, self.case["name"], sql, items, (), "exact", frozenset(), {})

    def _declared(self, name: str) -> str:
        more = (
            self.query.get("shape", "")
            if isinstance(self.query.get("shape", ""), str)
            else self.query["shape"].get(name, "")
        )
        return DECLARE.format(name=name, columns=self._columns(name), more=" " + more)

    def _columns(self, name: str) -> str:
        first = next(
            p for i in self._input if i.get("stream", "s").lower() == name for p in [i.get("payload")] if p is not None
        )
        return "".join(f", {column} {_type(value)}" for column, value in _payload(first).items())

    @property
    def _input(self) -> list[Mapping[str, Any]]:
        """The items of the list, after the events of its settings; all in one stream if the query needs that."""
        made = []
        for name, listed in self.query.get("reference", {}).items():
            for key, value in self.case["params"][listed["params"]].items():
                payload = {"id": int(key), "value": value}
                made.append({"stream": name, "start": listed["start"], "end": listed["end"], "payload": payload})
        for item in self.case["input"]:
            values = {name: value for name, value in item.items() if name != "stream" or "together" not in self.query}
            if "together" in self.query and "payload" in item:
                values["payload"] = {self.query["together"]: item["stream"], **_payload(item["payload"])}
            made.append(values)
        return made

    def _items(self) -> Sequence[ScriptItem]:
        made = []
        for number, item in enumerate(self._input, 1):
            stream = item.get("stream", "s").lower()
            if item.get("kind") in ("cti", "punctuation"):
                named = {i["stream"].lower() for i in self._input if "stream" in i} or {"s"}
                told = [stream] if "stream" in item else sorted(named)  # an event without a stream belongs to each
                made += [ScriptItem(number, name, "main", None, _time(item["t"])) for name in told]
                continue
            kind = item.get("kind", "interval")
            stop = _time(item["end"]) if "end" in item else None
            values = {"kind": kind, "start": item["start"], "stop": None if stop == END else stop}
            made.append(ScriptItem(number, stream, "main", {**values, **_payload(item["payload"])}, None))
        if self.query.get("end"):
            at = END if self.query["end"] is True else self.query["end"]
            streams = sorted({item.stream for item in made})
            made += [ScriptItem(len(made) + n, name, "main", None, at) for n, name in enumerate(streams, 1)]
        return made


def _type(value: Any) -> str:
    return {int: "INT", float: "DOUBLE"}.get(type(value), "STRING")


def _payload(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list):
        return {f"p{n}": part for n, part in enumerate(value)}
    return {"payload": value}


def _time(value: Any) -> int:
    return END if value == "inf" else int(value)


def time_of(value: datetime | None) -> Any:
    """A timestamp of a result, in the units of the lists."""
    return "inf" if value is None else to_micros(value)


def plain(case: EventCase, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a result in the form of the lists: its lifetime and its payload."""
    found = {name: value for name, value in row.items() if name != "rowtime"}
    shown = {"change": "kind", "kind": "kind", "start": "start", "stop": "end", "new_stop": "new_end"}
    made = {
        word: time_of(found.pop(name)) if word != "kind" else found.pop(name)
        for name, word in shown.items()
        if name in found and (name != "kind" or "change" not in found)
    }
    if made.get("kind") != "retract":
        made.pop("new_end", None)
    if case.query.get("form") == "edges" and made["kind"] == "start":
        made.pop("end")
    form = case.query.get("payload", "payload")
    values = list(found.values())
    return {**made, **_in_form(form, found, values)}


def _in_form(form: str, found: Mapping[str, Any], values: list[Any]) -> dict[str, Any]:
    if form == "columns":
        return {name: time_of(value) if isinstance(value, datetime) else value for name, value in found.items()}
    return {"payload": values[0] if form in ("payload", "bag") else values if form == "list" else dict(found)}


def load(system: str) -> list[EventCase]:
    """The lists of a system; each has one or more queries."""
    queries = yaml.load((FOLDER / system / "queries.yaml").read_text("utf-8"), Loader=Safe)  # noqa: S506 - a safe loader
    found = []
    for path in sorted((FOLDER / system).glob("*.json")):
        case = json.loads(path.read_text("utf-8"))
        listed = queries[case["id"]]
        for query in listed if isinstance(listed, list) else [listed]:
            part = query.get("part")
            found.append(EventCase(f"{case['id']}{' ' + part if part else ''}", case, query))
    return found
