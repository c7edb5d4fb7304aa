"""Checks events against the JSON Schemas that OpenLineage publishes, which are in the folder ``openlineage``.

The schema of events says only that a facet is an object with a ``_schemaURL``. So each facet is also checked with the
schema of this URL.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

FOLDER = Path(__file__).parent / "openlineage"
FACETS = ("facets", "inputFacets", "outputFacets")
FORMATS = FormatChecker()


@FORMATS.checks("date-time", raises=ValueError)
def _is_instant(value: object) -> bool:
    """A date, a time and a zone; jsonschema itself checks instants and addresses only with further packages."""
    return datetime.fromisoformat(str(value)).tzinfo is not None and "T" in str(value)


@FORMATS.checks("uri", raises=ValueError)
def _is_address(value: object) -> bool:
    return bool(urlsplit(str(value)).scheme) and " " not in str(value)


def broken(event: Mapping[str, Any]) -> list[str]:
    """The violations of the schemas by an event, which is plain values."""
    return [*_broken(event["schemaURL"], event), *_broken_facets(event)]


def _broken_facets(event: Mapping[str, Any]) -> Iterator[str]:
    for owner in (event["run"], event["job"], *event["inputs"], *event["outputs"]):
        for kind in FACETS:
            for name, facet in owner.get(kind, {}).items():
                found = _broken(facet["_schemaURL"], facet) or _misplaced(facet["_schemaURL"], name)
                yield from (f"{name}: {said}" for said in found)


def _broken(url: str, value: Any) -> list[str]:
    """The violations of a schema by a value; an unknown schema is a violation too."""
    try:
        schemas().resolver().lookup(url)
    except Unresolvable:
        return [f"no schema {url}"]
    checker = Draft202012Validator({"$ref": url}, registry=schemas(), format_checker=FORMATS)
    return [f"{error.json_path}: {error.message}" for error in checker.iter_errors(value)]


def _misplaced(url: str, name: str) -> list[str]:
    """A schema says under which name its facet is."""
    place, _, what = url.partition("#")
    expected = schemas().contents(place)["properties"].get(name, {}).get("$ref")
    return [] if expected == f"#{what}" else [f"{url} is no facet of this name"]


@cache
def schemas() -> Registry[Any]:
    """All schemas by their ``$id``."""
    found = [json.loads(path.read_text()) for path in sorted(FOLDER.rglob("*.json"))]
    for one in found:
        Draft202012Validator.check_schema(one)
    return Registry().with_resources((one["$id"], DRAFT202012.create_resource(one)) for one in found)
