"""The client settings that follow from the options of a topic with transactions."""

from __future__ import annotations

import pytest

from rowtime.core.errors import Refused
from rowtime.plan.formats.kafka_transactions import DEFAULTS, client_settings

USER = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a\\"b" password=\'c d\';'


def given(**named: str) -> dict[str, str]:
    return {f"kafka.{name.replace('_', '.')}": value for name, value in named.items()}


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({"topic": "t", **given(bootstrap_servers="h:1")}, {"bootstrap.servers": "h:1"}),
        (
            given(max_request_size="7", buffer_memory="2048"),
            {"message.max.bytes": "7", "queue.buffering.max.kbytes": 2},
        ),
        (given(compression_type="zstd", acks="all", fetch_max_bytes="9"), {"compression.type": "zstd"}),
        (
            given(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", sasl_jaas_config=USER),
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": 'a"b',
                "sasl.password": "c d",
            },
        ),
        (given(ssl_truststore_location="/ca", ssl_truststore_type="PEM"), {"ssl.ca.location": "/ca"}),
        (
            given(ssl_keystore_location="/k", ssl_keystore_type="pem"),
            {"ssl.certificate.location": "/k", "ssl.key.location": "/k"},
        ),
        (
            given(ssl_keystore_location="/k", ssl_keystore_type="PKCS12", ssl_keystore_password="p"),  # noqa: S106 - no password
            {"ssl.keystore.location": "/k", "ssl.keystore.password": "p"},
        ),
        (given(ssl_truststore_certificates="a\\nb"), {"ssl.ca.pem": "a\nb"}),
        (given(ssl_endpoint_identification_algorithm=""), {"ssl.endpoint.identification.algorithm": "none"}),
    ],
)
def test_settings_are_translated_for_the_other_client(options: dict[str, str], made: dict[str, str | int]) -> None:
    assert client_settings(options) == {**DEFAULTS, **made}


@pytest.mark.parametrize(
    "options",
    [
        given(acks="1"),
        given(partitioner_class="a.B"),
        given(partitioner_ignore_keys="true"),
        given(ssl_truststore_location="/t.jks"),
        given(ssl_keystore_location="/t.jks", ssl_keystore_type="JKS"),
        given(sasl_mechanism="GSSAPI", sasl_jaas_config=USER),
        given(sasl_mechanism="PLAIN", sasl_jaas_config='x required username="a";'),
        given(sasl_oauthbearer_token_endpoint_url="http://h"),  # noqa: S106 - no password
        given(ssl_protocol="TLSv1.3"),
        given(security_providers="a.B"),
    ],
    ids="+".join,
)
def test_settings_that_affect_brokers_or_partitions_are_never_dropped(options: dict[str, str]) -> None:
    with pytest.raises(Refused, match=r"R504 kafka.* cannot be combined with transactions: ") as refused:
        client_settings(options)
    assert "c d" not in str(refused.value)


def test_the_client_accepts_every_translated_setting() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    named = given(
        bootstrap_servers="127.0.0.1:1", batch_size="1000", client_dns_lookup="use_all_dns_ips", client_id="c",
        connections_max_idle_ms="1000", delivery_timeout_ms="1000", linger_ms="1", metadata_max_age_ms="1000",
        max_in_flight_requests_per_connection="5", reconnect_backoff_ms="1", reconnect_backoff_max_ms="1000",
        request_timeout_ms="1000", retries="3", retry_backoff_ms="1", retry_backoff_max_ms="100",
        receive_buffer_bytes="1000", send_buffer_bytes="1000", transaction_timeout_ms="1000",
        socket_connection_setup_timeout_ms="1000", sasl_kerberos_service_name="kafka", max_request_size="2000",
    )  # fmt: skip
    confluent_kafka.Producer({**client_settings(named), "transactional.id": "t"})
