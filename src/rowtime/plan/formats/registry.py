"""Options of a schema registry: its address and credentials, and the subject of a topic's schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rowtime.core.errors import Place, Problem
from rowtime.plan.formats import contract as takes
from rowtime.plan.formats.contract import Option

PREFIX: Final = "schema.registry."
URL: Final = f"{PREFIX}url"
SUBJECT: Final = f"{PREFIX}subject"
REGISTERS: Final = f"{PREFIX}auto.register.schemas"
USER: Final = f"{PREFIX}basic.auth.user.info"
TOKEN: Final = f"{PREFIX}bearer.auth.token"
AUTHORITIES: Final = f"{PREFIX}ssl.ca.location"
MOCK: Final = "mock://"
AVRO: Final = ("avro", "debezium-avro")
KIND_OF: Final = {**dict.fromkeys(AVRO, "AVRO"), "json-schema": "JSON", "protobuf": "PROTOBUF"}
"""The kind of schema of each format whose records begin with a schema id (Confluent's wire format)."""
FRAMED: Final = tuple(KIND_OF)
MESSAGE: Final = "protobuf.message"
"""The option that names the message of a schema: the first one by default. It affects what is read, so it is stored."""
ENVELOPES: Final = ("debezium-json", "debezium-avro")
"""Formats that are only read: changes of a database table."""
READ_OR_WRITTEN: Final = ("format", "value.format")
_MOCK: Final = re.compile(r"mock://[A-Za-z0-9][\w.-]*")


def _url(value: str) -> str:
    """Accept one address, or several with commas between them; ``mock://name`` is alone."""
    if value.startswith(MOCK):
        return "" if _MOCK.fullmatch(value) else "mock:// and a name of letters, digits, . _ and -"
    parts = [part.strip() for part in value.split(",")]
    fits = all(re.fullmatch(r"https?://[^\s/]+\S*", part) for part in parts)
    return "" if fits else "http://host:8081, https://… or mock://name"


def _user(value: str) -> str:
    return "" if ":" in value.strip(":") else "user:password"


def _message(value: str) -> str:
    name = r"[A-Za-z_]\w*"
    return "" if re.fullmatch(rf"{name}(\.{name})*", value, re.ASCII) else "the name of a message, such as shop.Order"


OPTIONS: Final = (
    Option(
        URL,
        _url,
        meaning="the address of the registry, several of one registry with commas between them, or `mock://name` "
        "for tests",
        default="required by the formats `avro`, `protobuf`, `json-schema` and `debezium-avro`",
    ),
    Option(SUBJECT, takes.some, meaning="the subject of the topic's values", default="`<topic>-value`"),
    Option(
        REGISTERS,
        takes.boolean,
        meaning="`false`: rows are written by the newest schema that the subject has",
        default="`true`",
        side="sink",
    ),
    Option(USER, _user, meaning="user and password", default="none"),
    Option(TOKEN, takes.some, meaning="a bearer token", default="none"),
    Option(
        AUTHORITIES,
        takes.some,
        meaning="a file with the certificates of the authorities to trust",
        default="those of the system",
        values="the path of a file",
    ),
    Option(
        MESSAGE,
        _message,
        meaning="with `protobuf`: the message of a schema that is read or written",
        default="the first of each schema",
        values="a name, with or without its package",
    ),
)


@dataclass(frozen=True)
class RegistryOptions:
    """A registry in a stream's options; ``subject`` is empty if it follows from the topic."""

    urls: tuple[str, ...]
    subject: str = ""
    registers: bool = True
    user: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    authorities: str = ""
    message: str = ""

    @classmethod
    def of(cls, named: Mapping[str, str]) -> RegistryOptions:
        """Read the options; `lacking` has reported missing ones."""
        given = {name.lower(): value for name, value in named.items()}
        urls = tuple(part.strip().rstrip("/") for part in given.get(URL, "").split(","))
        registers = given.get(REGISTERS, "true").strip().lower() == "true"
        texts = (given.get(name, "") for name in (USER, TOKEN, AUTHORITIES, MESSAGE))
        return cls(urls, given.get(SUBJECT, ""), registers, *texts)

    @property
    def called(self) -> str:
        """Return the name of the registry in messages."""
        return f"the schema registry {', '.join(self.urls)}"

    def subject_of(self, topic: str) -> str:
        """Return the subject of a topic's values: by Confluent's TopicNameStrategy, unless it is given."""
        return self.subject or f"{topic}-value"


def form_of(named: Iterable[tuple[str, str]], option: str) -> str:
    """Return the record format of a topic: from ``format`` when reading, from ``value.format`` when writing."""
    return next((value.lower() for name, value in named if name.lower() == option), "json")


def lacking(named: Iterable[tuple[str, str]], option: str, place: Place | None) -> Iterator[Problem]:
    """Yield missing or useless registry options (R504); ``option``: ``format`` for reading, else the other."""
    given = list(named)
    form, names = form_of(given, option), {name.lower() for name, _ in given}
    if form in FRAMED and URL not in names:
        hint = f"OPTIONS ({URL} 'http://host:8081', …), or {URL} 'mock://name' for a test."
        yield Problem("R504", f"records of the format {form} need the option {URL}", place, hint)
    unused = sorted(name for name in names if name.startswith(PREFIX))
    if unused and not any(form_of(given, use) in FRAMED for use in READ_OR_WRITTEN):
        hint = f"Leave it out, or set {option} 'avro'."
        yield Problem("R504", f"{unused[0]} has no effect on records of the format {form}", place, hint)
    if MESSAGE in names and not any(form_of(given, use) == "protobuf" for use in READ_OR_WRITTEN):
        hint = f"Leave it out, or set {option} 'protobuf'."
        yield Problem("R504", f"{MESSAGE} has no effect on records of the format {form}", place, hint)
