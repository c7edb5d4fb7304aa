"""What libraries do not promise: one module uses such parts of pyiceberg, and they are those it was written for."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table.update import snapshot, validate

import rowtime

SOURCE = Path(rowtime.__file__).parent
ADAPTER = "runtime/sinks/iceberg_replace.py"
LIBRARIES = ("pyiceberg", "duckdb", "deltalake", "obstore", "google", "ptars")
PARTS: dict[str, tuple[Any, str]] = {
    "_SnapshotProducer": (snapshot._SnapshotProducer, "6f984bfe0ecffb04"),
    "_OverwriteFiles": (snapshot._OverwriteFiles, "41ef927d58c4e3db"),
    "_validate_data_files_exist": (validate._validate_data_files_exist, "8ba263e83cbcfc79"),
    "_validate_no_new_deletes_for_data_files": (validate._validate_no_new_deletes_for_data_files, "6a98d2d1069be859"),
    "_record_batches_from_scan_tasks_and_deletes": (
        ArrowScan._record_batches_from_scan_tasks_and_deletes,
        "81c3ebb468b28a4c",
    ),
}
"""The parts, each with the checksum of its source."""


@pytest.mark.parametrize("name", PARTS)
def test_each_private_part_is_as_it_was(name: str) -> None:
    part, known = PARTS[name]
    assert checksum(part) == known, f"pyiceberg has changed {name}: read the change, then {ADAPTER}, then put it here"


def checksum(part: Any) -> str:
    """A checksum of the source, whatever its layout."""
    return hashlib.sha256(" ".join(inspect.getsource(part).split()).encode()).hexdigest()[:16]


def test_no_other_module_uses_private_parts_of_a_library() -> None:
    using = {name for file in SOURCE.rglob("*.py") for name in privately_used(file)}
    assert using == {
        (ADAPTER, "_OverwriteFiles"),
        (ADAPTER, "_validate_data_files_exist"),
        (ADAPTER, "_validate_no_new_deletes_for_data_files"),
        (ADAPTER, "_summary"),
        (ADAPTER, "_table"),
        (ADAPTER, "_record_batches_from_scan_tasks_and_deletes"),
    }


def privately_used(file: Path) -> Iterator[tuple[str, str]]:
    """The private names that a module imports from a library, or looks up in objects, if it imports such a library."""
    shown, tree = file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and library(node.module or "")]
    plain = [part.name for node in ast.walk(tree) if isinstance(node, ast.Import) for part in node.names]
    for node in imports:
        names = [*(node.module or "").split("."), *(part.name for part in node.names)]
        yield from ((shown, name) for name in names if private(name))
    if imports or any(map(library, plain)):
        own = {"self", "cls"}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and private(node.attr):
                of = node.value
                if not (isinstance(of, ast.Name) and of.id in own) and "one of ours" not in line_of(file, node.lineno):
                    yield shown, node.attr


def library(module: str) -> bool:
    return module.partition(".")[0] in LIBRARIES


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def line_of(file: Path, number: int) -> str:
    return file.read_text().splitlines()[number - 1]
