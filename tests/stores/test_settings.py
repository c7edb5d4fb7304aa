"""Addresses and keys of stores: from the process, from a file, from the environment."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rowtime as rt
from reliability.stores.proxy import Faults, faulty
from rowtime.cli.main import app
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.runtime.store_access import hadoop_settings
from tests.stores.server import BUCKET, address

SECRET = "not-to-be-shown-anywhere"  # noqa: S105 - of no use elsewhere


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Faults]]:
    """A store that is not in the environment; the working directory is empty."""
    with faulty(address()) as found:
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.delenv(name)
        monkeypatch.delenv("ROWTIME_CONFIG", raising=False)
        monkeypatch.chdir(tmp_path)
        yield found
        rt.configure_stores({})


def table(endpoint: str, key: str) -> str:
    lines = [f'[stores."s3://{BUCKET}"]', f'endpoint = "{endpoint}"', 'region = "eu-west-9"']
    return "\n".join([*lines, f'access_key_id = "{key}"', 'secret_access_key = "${SECRET_OF_STORE}"', ""])


def test_a_call_overrides_the_named_file_and_that_overrides_the_file_of_the_folder(
    proxy: tuple[str, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, faults = proxy
    monkeypatch.setenv("SECRET_OF_STORE", SECRET)

    def used() -> set[str]:
        faults.keys.clear()
        place = place_of(f"s3://{BUCKET}/settings")
        (place / "x").upload(b"1")
        assert SECRET not in f"{place!r} {place} {place.bucket.settings!r}"  # type: ignore[union-attr]
        (pickle.loads(pickle.dumps(place)) / "y").upload(b"1")  # noqa: S301 - a worker has what its driver has
        return faults.keys

    (tmp_path / "rowtime.toml").write_text(table(endpoint, "folder"))
    assert used() == {"folder"}
    named = tmp_path / "named.toml"
    named.write_text(table(endpoint, "named"))
    monkeypatch.setenv("ROWTIME_CONFIG", str(named))
    assert used() == {"named"}
    said = {"endpoint": endpoint, "access_key_id": "called", "secret_access_key": SECRET}
    rt.configure_stores({f"s3a://{BUCKET}/": said})
    assert used() == {"called"}
    rt.configure_stores({})
    assert used() == {"named"}


def test_settings_of_a_bucket_apply_to_sparks_file_system_of_this_bucket_only(
    proxy: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"endpoint": "https://a.example", "access_key_id": "k", "secret_access_key": SECRET}
    rt.configure_stores({"s3://one": told, "s3://two": {**told, "session_token": "t"}, "s3://three": {"region": "r"}})

    def hadoop(url: str) -> dict[str, str]:
        place = place_of(url)
        assert isinstance(place, ObjectPlace)
        return hadoop_settings(place.bucket)

    bucket = "fs.s3a.bucket.one."
    assert hadoop("s3://one/x") == {
        f"{bucket}endpoint": "https://a.example",
        f"{bucket}path.style.access": "true",
        f"{bucket}endpoint.region": "us-east-1",
        f"{bucket}access.key": "k",
        f"{bucket}secret.key": SECRET,
        f"{bucket}aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    assert hadoop("s3://two/x")["fs.s3a.bucket.two.session.token"] == "t"
    assert hadoop("s3://two/x")["fs.s3a.bucket.two.aws.credentials.provider"].endswith(
        "TemporaryAWSCredentialsProvider"
    )
    assert hadoop("s3://three/x") == {"fs.s3a.bucket.three.endpoint.region": "r"}
    assert hadoop("s3://four/x") == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://b.example")
    assert hadoop("s3://four/x")["fs.s3a.endpoint"] == "http://b.example"


WRONG = {
    "[stores": "R587.*is not TOML",
    "[store]": "R588.*store is not a setting\nDid you mean stores",
    'stores = "s3://bucket"': "R588.*stores is not a table",
    '[stores."gs://bucket"]': "R588.*gs://bucket is not a bucket of S3",
    '[stores."s3://bucket/folder"]': "R588.*s3://bucket/folder is not a bucket",
    '[stores."s3://bucket"]\nendpont = "http://x"': "R588.*endpont is not a setting\nDid you mean endpoint",
    '[stores."s3://bucket"]\nregion = 1': "R588.*region is not a text",
    '[stores."s3://bucket"]\nendpoint = "localhost:9000"': "R588.*endpoint is not an address",
    '[stores."s3://bucket"]\naccess_key_id = "k"': "R588.*a part of the credentials",
    '[stores."s3://bucket"]\nregion = "${NO_SUCH_NAME}"': "R588.*NO_SUCH_NAME",
}


def test_a_bad_configuration_file_is_refused_with_what_to_do(
    proxy: tuple[str, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert proxy
    for text, words in WRONG.items():
        (tmp_path / "rowtime.toml").write_text(text)
        with pytest.raises(Refused, match=words):
            place_of("s3://bucket/folder")
    (tmp_path / "rowtime.toml").write_bytes(b"\xff")
    with pytest.raises(Refused, match=r"R587.*not UTF-8"):
        place_of("s3://bucket/folder")
    (tmp_path / "rowtime.toml").unlink()
    (tmp_path / "rowtime.toml").mkdir()
    with pytest.raises(Refused, match=r"R587.*cannot be read"):
        place_of("s3://bucket/folder")
    monkeypatch.setenv("ROWTIME_CONFIG", "elsewhere.toml")
    with pytest.raises(Refused, match=r"R587.*elsewhere\.toml does not exist"):
        place_of("s3://bucket/folder")
    with pytest.raises(Refused, match=r"R588 configure_stores.*regio is not a setting"):
        rt.configure_stores({"s3://bucket": {"regio": "x"}})


def test_a_command_reads_the_file_that_it_is_given(
    proxy: tuple[str, Faults], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, faults = proxy
    named = tmp_path / "named.toml"
    monkeypatch.setenv("SECRET_OF_STORE", SECRET)
    named.write_text(table(endpoint, "given"))
    shown = CliRunner().invoke(app, ["--config", str(named), "status", f"s3://{BUCKET}/nothing"])
    assert (shown.exit_code, "R405" in shown.output, faults.keys) == (1, True, {"given"})
    named.write_text("[stores")
    shown = CliRunner().invoke(app, ["--config", str(named), "status", str(tmp_path)])
    assert (shown.exit_code, "R587" in shown.output) == (1, True)
    shown = CliRunner().invoke(app, ["status", str(tmp_path)])
    assert "R405" in shown.output


def test_a_missing_bucket_and_refused_keys_have_codes(
    proxy: tuple[str, Faults], monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint, faults = proxy
    told = {"endpoint": endpoint, "access_key_id": "k", "secret_access_key": SECRET}
    rt.configure_stores({"s3://no-such-bucket": told, f"s3://{BUCKET}": told})
    shown = CliRunner().invoke(app, ["status", "s3://no-such-bucket/x"])
    assert (
        shown.exit_code,
        "R581 the checkpoint s3://no-such-bucket/x: the bucket s3://no-such-bucket" in shown.output,
    ) == (3, True)
    monkeypatch.setattr(faults, "ask", lambda *_: (403, {}, b"<Error><Code>SignatureDoesNotMatch</Code></Error>"))
    with pytest.raises(Failure, match=r"R582(.|\n)*rowtime\.toml") as failed:
        (place_of(f"s3://{BUCKET}/x") / "y").upload(b"1")
    assert SECRET not in str(failed.value)
