"""A schema registry: schemas by id and by subject, over HTTP, or in a folder for tests (``mock://``).

The requests are those of Confluent's REST API, which others offer too (Karapace, Apicurio, Redpanda). The schema of an
id never changes, so fetched schemas are kept.
"""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.stores import Place
from rowtime.plan.formats.registry import MOCK, REGISTERS, RegistryOptions
from rowtime.state.files import make_folder, write_new

SECONDS: Final = 10  # to wait for an answer
_CONTENT: Final = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND, _CONFLICT, _INVALID, _SERVER = 404, 409, 422, 500
_UNKNOWN_REQUEST: Final = 429
_AVRO: Final = "AVRO"


@dataclass(frozen=True)
class Schema:
    """A schema in a registry. ``kind``: AVRO, JSON or PROTOBUF; ``references``: the schemas that it references."""

    text: str
    kind: str = _AVRO
    references: tuple[tuple[str, str], ...] = ()
    """The name under which a schema is referenced, and its text."""

    def as_json(self) -> dict[str, Any]:
        """Return the form for a checkpoint."""
        return {
            "schema": self.text,
            "schemaType": self.kind,
            "references": [list(reference) for reference in self.references],
        }

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> Schema:
        """Return the schema from its form in a checkpoint."""
        references = tuple((name, text) for name, text in content.get("references", ()))
        return cls(content["schema"], content.get("schemaType", _AVRO), references)


class Registry(Protocol):
    """The requests to a registry. Each raises ``Failure`` (R501) if it does not answer."""

    def by_id(self, number: int) -> Schema | None:
        """Return the schema of an id; ``None`` if the registry does not know the id."""

    def latest(self, subject: str) -> Schema | None:
        """Return the newest schema of a subject; ``None`` if there is none."""

    def id_of(self, subject: str, schema: Schema, *, register: bool) -> int:
        """Return the id of a schema under a subject; raises ``Refused`` (R549) if it has none, or is not accepted."""


def registry_of(options: RegistryOptions, home: Place) -> Registry:
    """Return the registry that a stream names; ``home``: the home folder, where registries for tests are."""
    if options.urls[0].startswith(MOCK):
        return MockRegistry(home / "schema-registry" / options.urls[0].removeprefix(MOCK))
    return HttpRegistry(options)


class HttpRegistry:
    """A registry at a URL, or at several URLs of one cluster, which are tried in order."""

    def __init__(self, options: RegistryOptions) -> None:
        self._options = options
        self._schemas: dict[int, Schema] = {}
        self._ids: dict[tuple[str, Schema], int] = {}

    def by_id(self, number: int) -> Schema | None:
        """See `Registry`."""
        if number not in self._schemas:
            status, answer = self._ask("GET", f"/schemas/ids/{number}")
            if status == _NOT_FOUND:
                return None
            self._schemas[number] = self._schema(answer)
        return self._schemas[number]

    def latest(self, subject: str) -> Schema | None:
        """See `Registry`."""
        status, answer = self._ask("GET", f"/subjects/{quote(subject, safe='')}/versions/latest")
        if status == _NOT_FOUND:
            return None
        schema = self._schema(answer)
        if "id" in answer:  # so that neither its text nor its references need be looked up
            self._ids[subject, schema] = int(answer["id"])
        return schema

    def id_of(self, subject: str, schema: Schema, *, register: bool) -> int:
        """See `Registry`."""
        if (subject, schema) not in self._ids:
            path = f"/subjects/{quote(subject, safe='')}{'/versions' if register else ''}"
            status, answer = self._ask("POST", path, {"schema": schema.text, "schemaType": schema.kind})
            if status in (_NOT_FOUND, _CONFLICT, _INVALID):
                raise not_taken(self._options.called, subject, str(answer.get("message", "")), register=register)
            self._ids[subject, schema] = int(answer["id"])
        return self._ids[subject, schema]

    def _schema(self, answer: Mapping[str, Any], depth: int = 0) -> Schema:
        """Return a schema with the schemas that it references; those that others reference come first."""
        references: dict[str, str] = {}
        for reference in answer.get("references") or ():
            _, inner = self._ask(
                "GET", f"/subjects/{quote(reference['subject'], safe='')}/versions/{reference['version']}"
            )
            below = self._schema(inner, depth + 1)
            references |= dict(below.references)
            references[reference["name"]] = below.text
        return Schema(answer["schema"], answer.get("schemaType") or _AVRO, tuple(references.items()))

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Return the answer of the first address that has one, with its status."""
        why = ""
        for url in self._options.urls:
            try:
                status, text = self._request(method, url + path, body)
                answer = json.loads(text or "{}")
            except (OSError, HTTPException, ValueError) as error:
                why = f"{urlsplit(url).netloc.rpartition('@')[2]}: {getattr(error, 'reason', error)}"
                continue
            if status < _SERVER and status not in (401, 403, _UNKNOWN_REQUEST):
                return status, answer
            why = f"{status} {answer.get('message', '')}".strip()
        hint = "Check schema.registry.url, that the registry runs, and who may access it (schema.registry.basic.auth…)."
        raise Failure(Problem("R501", f"{self._options.called} does not answer: {why}", hint=hint))

    def _request(self, method: str, url: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        headers = {"Accept": f"{_CONTENT}, application/json", "Content-Type": _CONTENT}
        if self._options.token:
            headers["Authorization"] = f"Bearer {self._options.token}"
        elif self._options.user:
            headers["Authorization"] = f"Basic {base64.b64encode(self._options.user.encode()).decode()}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 - only http and https (`_url`)
        authorities = self._options.authorities
        context = ssl.create_default_context(cafile=authorities) if authorities else None
        try:
            with urllib.request.urlopen(request, timeout=SECONDS, context=context) as answer:  # noqa: S310 - as above
                return int(answer.status), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()


class MockRegistry:
    """A registry for tests: a folder with one file per id, ``1.json`` with a subject and a schema."""

    def __init__(self, folder: Place) -> None:
        self._folder = folder

    def by_id(self, number: int) -> Schema | None:
        """See `Registry`."""
        content = self._content_of(number)
        return None if content is None else Schema.of_json(content)

    def latest(self, subject: str) -> Schema | None:
        """See `Registry`."""
        mine = [Schema.of_json(content) for _, content in self._all() if content.get("subject") == subject]
        return mine[-1] if mine else None

    def id_of(self, subject: str, schema: Schema, *, register: bool) -> int:
        """See `Registry`; it accepts every schema."""
        for number, content in self._all():
            if content.get("subject") == subject and Schema.of_json(content) == schema:
                return number
        if not register:
            raise not_taken(f"the schema registry {MOCK}{self._folder.name}", subject, "", register=register)
        return self.add(subject, schema)

    def add(self, subject: str, schema: Schema) -> int:
        """Add a schema with the next id, even if the same schema exists."""
        make_folder(self._folder)
        number = max((number for number, _ in self._all()), default=0) + 1
        while True:
            content = json.dumps({"subject": subject, **schema.as_json()}, indent=2).encode()
            try:
                write_new(self._folder / f"{number}.json", content)
            except FileExistsError:
                number += 1
            else:
                return number

    def _all(self) -> list[tuple[int, dict[str, Any]]]:
        if not self._folder.exists():
            return []
        numbers = sorted(int(file.stem) for file in self._folder.iterdir() if file.stem.isdigit())
        return [(number, content) for number in numbers if (content := self._content_of(number)) is not None]

    def _content_of(self, number: int) -> dict[str, Any] | None:
        file = self._folder / f"{number}.json"
        if not file.exists():
            return None
        try:
            content = json.loads(file.read_text())
            schema = content["schema"]
        except (ValueError, KeyError, TypeError):
            what = f"{file} is not a schema of a mock registry"
            raise Failure(Problem("R501", what, hint='Write {"subject": "topic-value", "schema": {…}}.')) from None
        return {**content, "schema": schema if isinstance(schema, str) else json.dumps(schema)}


def not_taken(called: str, subject: str, why: str, *, register: bool) -> Exception:
    """Return ``Refused`` (R549): a registry does not accept a schema, or does not have it."""
    reason = f": {why}" if why else ""
    if register:
        what = f"{called} rejects the schema of the columns for the subject {subject}{reason}"
        hint = "Declare columns whose schema is compatible, or name another subject: schema.registry.subject '…'."
        return refuse("R549", what, hint)
    what = f"{called} has no schema of these columns under the subject {subject}{reason}"
    return refuse("R549", what, f"Register it, or set {REGISTERS} 'true'.")
