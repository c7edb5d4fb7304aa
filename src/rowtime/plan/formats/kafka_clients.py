"""The settings of Kafka's clients (consumer, producer, admin) after ``kafka.``, with their values."""

from __future__ import annotations

from typing import Final

from rowtime.plan.formats.contract import Check, anything, boolean, number, one_of, some, whole, words

SET_BY_SPARK: Final = {
    "auto.offset.reset": "startingOffsets says where the first start begins to read",
    "key.deserializer": "records are read as bytes",
    "value.deserializer": "records are read as bytes",
    "key.serializer": "records are written as bytes",
    "value.serializer": "records are written as bytes",
    "enable.auto.commit": "the checkpoint knows what has been read",
    "auto.commit.interval.ms": "the checkpoint knows what has been read",
    "interceptor.classes": "Spark's connector takes no interceptors",
    "transactional.id": "with transactions 'true' rowtime gives it, of the topic and the stream",
    "partition.assignment.strategy": "ticks assign partitions themselves",
}
"""Settings of the connector or of rowtime itself, with the reason."""

_MILLIS: Final = """
    connections.max.idle.ms default.api.timeout.ms fetch.max.wait.ms heartbeat.interval.ms max.poll.interval.ms
    metadata.max.age.ms metrics.sample.window.ms reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
    retry.backoff.max.ms retry.backoff.ms sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    session.timeout.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms delivery.timeout.ms
    linger.ms max.block.ms metadata.max.idle.ms partitioner.availability.timeout.ms transaction.timeout.ms
    sasl.kerberos.min.time.before.relogin metadata.recovery.rebootstrap.trigger.ms
"""
_SIZES: Final = """
    fetch.max.bytes fetch.min.bytes max.partition.fetch.bytes receive.buffer.bytes send.buffer.bytes
    max.poll.records metrics.num.samples batch.size buffer.memory max.in.flight.requests.per.connection
    max.request.size retries sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.oauthbearer.clock.skew.seconds compression.gzip.level compression.lz4.level compression.zstd.level
"""
_NUMBERS: Final = """
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter
"""
_FLAGS: Final = """
    allow.auto.create.topics auto.include.jmx.reporter check.crcs enable.metrics.push exclude.internal.topics
    enable.idempotence partitioner.adaptive.partitioning.enable partitioner.ignore.keys
    sasl.oauthbearer.header.urlencode
"""
_TEXTS: Final = """
    client.id client.rack group.id group.instance.id group.remote.assignor sasl.jaas.config sasl.kerberos.kinit.cmd
    sasl.kerberos.service.name sasl.mechanism sasl.oauthbearer.expected.audience
    sasl.oauthbearer.expected.issuer sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name
    sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url ssl.cipher.suites ssl.enabled.protocols
    ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain
    ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
    ssl.truststore.password ssl.truststore.type
"""
PLUGINS: Final = frozenset(
    words("""
    metric.reporters sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
    security.providers ssl.engine.factory.class partitioner.class
""")
)
"""Settings that name a class of the user, which may read settings that no list has."""
_WORDS: Final = {
    "bootstrap.servers": some,
    "acks": one_of("all", "-1", "0", "1"),
    "client.dns.lookup": one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "compression.type": one_of("none", "gzip", "snappy", "lz4", "zstd"),
    "group.protocol": one_of("classic", "consumer"),
    "isolation.level": one_of("read_committed", "read_uncommitted"),
    "metadata.recovery.strategy": one_of("none", "rebootstrap"),
    "metrics.recording.level": one_of("INFO", "DEBUG", "TRACE"),
    "security.protocol": one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "ssl.endpoint.identification.algorithm": anything,
}
_KINDS: Final[tuple[tuple[str, Check], ...]] = (
    (_MILLIS, whole(-1)),
    (_SIZES, whole(-1)),
    (_NUMBERS, number),
    (_FLAGS, boolean),
    (_TEXTS, some),
)

SETTINGS: Final[dict[str, Check]] = {
    **{name: check for names, check in _KINDS for name in words(names)},
    **dict.fromkeys(PLUGINS, some),
    **_WORDS,
}
"""Every setting that users may give, without its prefix, and its values."""
