"""What object stores, and the libraries that ask them, say of a request that failed, as errors of rowtime."""

from __future__ import annotations

import re
from typing import Final

from rowtime.core.errors import Failure, Problem

OWN: Final = "Give credentials by rowtime.toml, by the environment (AWS_ACCESS_KEY_ID, …), or by the machine's role."
_NO_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "specified bucket does not exist")
_REFUSALS: Final = ("PermissionDeniedError", "UnauthenticatedError")  # of obstore
_FORBIDDEN: Final = re.compile(r"\b(403 Forbidden|401 Unauthorized)\b")  # as lists of objects are refused
_ASK_AGAIN: Final = "Check the endpoint and the network. A tick under way is repeated; nothing is lost."
_LONGEST: Final = 400  # characters


def lacks_bucket(error: BaseException) -> bool:
    """True if what is not there is the bucket."""
    return any(words in str(error) for words in _NO_BUCKET)


def failure_of(error: BaseException, bucket: str, key: str) -> Failure:
    """R581 to R583: what was said when a bucket (in words) was asked for a key."""
    text = said(error)
    if lacks_bucket(error):
        return _failure("R581", bucket, key, "is not there", "Create the bucket, or correct the URL.")
    if type(error).__name__ in _REFUSALS or _FORBIDDEN.search(text):
        hint = f"It takes the rights to read, write, list and delete below the folder. {OWN}"
        return _failure("R582", bucket, key, f"refuses the credentials: {text}", hint)
    return _failure("R583", bucket, key, f"does not answer: {text}", _ASK_AGAIN)


def unwritten(error: BaseException, bucket: str, key: str) -> Failure:
    """R583: a write whose condition does not hold, as far as the store says."""
    return _failure("R583", bucket, key, f"refuses to write: {said(error)}", _ASK_AGAIN)


def said(error: BaseException) -> str:
    """What a store says, in a line, without what a URL may have behind its path, and without colours."""
    found = re.sub(r"\x1b\[\d*m|\u21b3", "", str(error).split("\n\n", 1)[0])
    return re.sub(r"\?\S*", "", ": ".join(" ".join(line.split()) for line in found.splitlines()))[:_LONGEST]


def _failure(code: str, bucket: str, key: str, what: str, hint: str) -> Failure:
    return Failure(Problem(code, f"{bucket}, asked for {key or 'its content'}, {what}", hint=hint))
