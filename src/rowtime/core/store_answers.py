"""Turns errors of object stores and their libraries into errors of rowtime."""

from __future__ import annotations

import re
from typing import Final

from rowtime.core.errors import Failure, Problem

_CREDENTIALS: Final = {
    "s3": "by rowtime.toml, by the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), or by the machine's role",
    "gs": "by the environment (GOOGLE_APPLICATION_CREDENTIALS), or by the service account of the machine",
    "az": "by the environment (AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY), or by the machine's identity",
}
_SCHEMES_OF_AZURE: Final = ("az", "abfss")
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist")
_REFUSALS: Final = ("PermissionDeniedError", "UnauthenticatedError")  # of obstore
_FORBIDDEN: Final = re.compile(r"\b(403 Forbidden|401 Unauthorized)\b")  # how listings are refused
_UNUSABLE: Final = re.compile(r"service account file|Invalid Access Key|Error reading pem")  # no request was made
_OF_THE_MACHINE: Final = "169.254.169.254"  # the address of the machine's own role, the last source of credentials
_ASK_AGAIN: Final = "Check the endpoint and the network. A tick under way is repeated; nothing is lost."
_LONGEST: Final = 400  # characters


def lacks_bucket(error: BaseException) -> bool:
    """Return True if the error says that the bucket does not exist."""
    return any(words in str(error) for words in _NO_BUCKET)


def credentials(scheme: str) -> str:
    """Return a sentence that says how to give credentials for a scheme (``s3``, ``gs``, ``az``, ``abfss``)."""
    kind = "az" if scheme in _SCHEMES_OF_AZURE else scheme
    return f"Give credentials {_CREDENTIALS.get(kind, _CREDENTIALS['s3'])}."


def failure_of(error: BaseException, bucket: str, url: str, key: str) -> Failure:
    """Return R581 to R583 for a failed request for a key; ``bucket`` is in words, ``url`` its URL."""
    text, own = one_line(error), credentials(url.partition(":")[0])
    if lacks_bucket(error):
        return _failure("R581", bucket, key, "does not exist", "Create the bucket, or correct the URL.")
    if type(error).__name__ in _REFUSALS or _FORBIDDEN.search(text):
        hint = f"Access needs the rights to read, write, list and delete below the folder. {own}"
        return _failure("R582", bucket, key, f"refuses the credentials: {text}", hint)
    if _UNUSABLE.search(text):
        return _failure("R582", bucket, key, f"cannot be reached: {text}", f"The credentials cannot be used. {own}")
    if _OF_THE_MACHINE in text:
        hint = f"No credentials were found, and the machine has no role that gives any. {own}"
        return _failure("R583", bucket, key, f"does not answer: {text}", hint)
    return _failure("R583", bucket, key, f"does not answer: {text}", _ASK_AGAIN)


def unwritten(error: BaseException, bucket: str, key: str) -> Failure:
    """Return R583: a write failed because its condition does not hold, according to the store."""
    return _failure("R583", bucket, key, f"refuses to write: {one_line(error)}", _ASK_AGAIN)


def one_line(error: BaseException) -> str:
    """Return a store's message as one line, without query strings of URLs and without colours."""
    message = re.sub(r"\x1b\[\d*m|\u21b3", "", str(error).split("\n\n", 1)[0])
    return re.sub(r"\?\S*", "", ": ".join(" ".join(line.split()) for line in message.splitlines()))[:_LONGEST]


def _failure(code: str, bucket: str, key: str, what: str, hint: str) -> Failure:
    return Failure(Problem(code, f"{bucket}, asked for {key or 'its content'}, {what}", hint=hint))
