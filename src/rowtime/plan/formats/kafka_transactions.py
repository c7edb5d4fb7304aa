"""Translates the options of a topic for the client that writes transactions: librdkafka, not Java's.

A setting that decides how brokers are reached, or where a record goes, is translated or refused. Settings that only
tune Java's client are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rowtime.core.errors import Refused, refuse
from rowtime.plan.formats.contract import words
from rowtime.plan.formats.kafka_clients import PLUGINS

PREFIX: Final = "kafka."
TRANSACTIONS: Final = "transactions"
_SAME: Final = frozenset(
    words("""
    batch.size bootstrap.servers client.dns.lookup client.id compression.type connections.max.idle.ms
    delivery.timeout.ms linger.ms max.in.flight.requests.per.connection metadata.max.age.ms reconnect.backoff.max.ms
    reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.kerberos.service.name
    sasl.mechanism security.protocol socket.connection.setup.timeout.ms ssl.key.password transaction.timeout.ms
""")
)
_CALLED: Final = {
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
_SECURITY: Final = re.compile(r"(ssl|sasl|security)\.")
_TUNES: Final = ("sasl.login.", "sasl.kerberos.ticket.", "sasl.kerberos.min.")
_LOGIN: Final = re.compile(r'\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\')')
_BY_NAME: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_KILO: Final = 1024

DEFAULTS: Final[Mapping[str, str | int]] = {
    "compression.type": "none",
    "linger.ms": 5,
    "message.max.bytes": 1_048_576,  # as in Java's client
    "partitioner": "murmur2_random",  # as in Java's client, so that a key goes to the same partition
    "queue.buffering.max.kbytes": 32 * _KILO,
    "transaction.timeout.ms": 300_000,
}


def client_settings(options: Mapping[str, str]) -> dict[str, str | int]:
    """Return the settings of librdkafka, from options with lower-case names. Raises ``Refused`` (R504)."""
    given = {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)}
    settings: dict[str, str | int] = {**DEFAULTS, **_stores(given), **_login(given)}
    for name, value in given.items():
        if name in _SAME:
            settings[name] = value
        elif name in _CALLED:
            settings[_CALLED[name]] = value.replace("\\n", "\n") if "pem" in _CALLED[name] else value
        elif name == "buffer.memory":
            settings["queue.buffering.max.kbytes"] = max(1, int(value) // _KILO)
        elif name == "ssl.endpoint.identification.algorithm":
            settings[name] = value or "none"
        elif name == "acks" and value not in ("all", "-1"):
            raise _vain("acks", "a transaction needs the answer of all replicas", "Leave it out.")
        elif name in PLUGINS or name == "partitioner.ignore.keys":
            raise _vain(name, "it is one of Java's client", "Leave it out, or leave transactions out.")
    return settings


def _stores(given: Mapping[str, str]) -> dict[str, str]:
    """Translate certificates and keys in files. Only Java reads Java's own kind of store."""
    settings = {}
    if place := given.get("ssl.truststore.location"):
        if given.get("ssl.truststore.type", "JKS").upper() != "PEM":
            raise _vain("ssl.truststore.location", "the file must be in PEM format", _PEM)
        settings["ssl.ca.location"] = place
    if place := given.get("ssl.keystore.location"):
        kind = given.get("ssl.keystore.type", "JKS").upper()
        if kind == "PEM":
            settings |= {"ssl.certificate.location": place, "ssl.key.location": place}
        elif kind == "PKCS12":
            settings |= {
                "ssl.keystore.location": place,
                "ssl.keystore.password": given.get("ssl.keystore.password", ""),
            }
        else:
            raise _vain("ssl.keystore.location", "the file must be in PEM or PKCS12 format", _PEM)
    return settings


_PEM: Final = "Give the certificates as PEM: kafka.ssl.truststore.type 'PEM', kafka.ssl.keystore.type 'PEM'."
_READ: Final = frozenset(
    words("""
    sasl.jaas.config ssl.truststore.location ssl.truststore.type ssl.truststore.password ssl.keystore.location
    ssl.keystore.type ssl.keystore.password ssl.endpoint.identification.algorithm
""")
)


def _login(given: Mapping[str, str]) -> dict[str, str]:
    """Translate the user and password of ``sasl.jaas.config``, if the mechanism has these."""
    for name in given:
        known = name in _SAME or name in _CALLED or name in _READ or name in PLUGINS or name.startswith(_TUNES)
        if _SECURITY.match(name) and not known:
            raise _vain(name, "it is one of Java's client", "Leave it out, or leave transactions out.")
    text = given.get("sasl.jaas.config")
    if text is None:
        return {}
    login = {name: re.sub(r"\\(.)", r"\1", one or bare) for name, one, bare in _LOGIN.findall(text)}
    if given.get("sasl.mechanism", "").upper() not in _BY_NAME or login.keys() != {"username", "password"}:
        hint = (
            f"Log in by a name and a password (kafka.sasl.mechanism {', '.join(_BY_NAME)}), or leave transactions out."
        )
        raise _vain("sasl.jaas.config", "it has to hold a username and a password", hint)
    return {"sasl.username": login["username"], "sasl.password": login["password"]}


def _vain(name: str, why: str, hint: str) -> Refused:
    return refuse("R504", f"{PREFIX}{name} cannot be combined with transactions: {why}", hint)
