"""Changes the sources for `make release`, and checks the result: release.py set VERSION, release.py check FOLDER.

``set`` writes the version and moves the unreleased entries of the changelog under its heading; a second time it does
nothing. ``check`` examines the wheel and the sdist of a folder: their metadata, and what must and must not be there.
"""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from packaging.metadata import Metadata
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
MODULE = ROOT / "src" / "rowtime" / "__init__.py"
CHANGELOG = ROOT / "CHANGELOG.md"
ASSIGNED = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)
UNRELEASED = "## Unreleased\n"
IN_WHEEL = ("rowtime/py.typed", "rowtime/__init__.py", "rowtime/cli/main.py", "licenses/LICENSE")
IN_SDIST = ("pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "Makefile", "tests/conftest.py", "docs/sql.md")


def set_version(text: str) -> None:
    """Write a version that is not below the current one; otherwise end the process."""
    try:
        version = Version(text)
    except InvalidVersion:
        sys.exit(f"{text!r} is no version. Write, for example, make release VERSION=0.2.0")
    if text != str(version):
        sys.exit(f"Write the version {text!r} in its usual form: {version}")
    source, changes = MODULE.read_text(encoding="utf-8"), CHANGELOG.read_text(encoding="utf-8")
    found = ASSIGNED.search(source)
    assert found is not None
    if version < Version(found[1]):
        sys.exit(f"The version is {found[1]} already, and {version} is below it.")
    cut = f"## {version} - "
    if cut not in changes:
        if _is_tagged(text):
            sys.exit(f"There is a tag v{text}, and the changelog has no such version. Choose another one.")
        before, heading, after = changes.partition(UNRELEASED)
        entries = after.partition("\n## ")[0]
        if not heading or "\n- " not in entries:
            sys.exit("CHANGELOG.md has no entries under Unreleased, so there is nothing to release.")
        CHANGELOG.write_text(f"{before}{UNRELEASED}\n{cut}{dt.datetime.now(dt.UTC).date()}\n{after}", encoding="utf-8")
    MODULE.write_text(ASSIGNED.sub(f'__version__ = "{version}"', source), encoding="utf-8")


def _is_tagged(version: str) -> bool:
    listed = subprocess.run(["git", "tag", "--list"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - git of the PATH
    return f"v{version}" in listed.stdout.split()


def check(folder: Path) -> None:
    """Print what is wrong with the wheel and the sdist in a folder, and end the process if anything is."""
    version = (ASSIGNED.search(MODULE.read_text(encoding="utf-8")) or [""])[1]
    wheel, sdist = folder / f"rowtime-{version}-py3-none-any.whl", folder / f"rowtime-{version}.tar.gz"
    wrong = [f"{path.name} was not built" for path in (wheel, sdist) if not path.exists()]
    if not wrong:
        wrong = [*_wrong_wheel(wheel, version), *_wrong_sdist(sdist, version)]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        sys.exit(1)


def _wrong_wheel(wheel: Path, version: str) -> list[str]:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        metadata = opened.read(f"rowtime-{version}.dist-info/METADATA")
    wrong = [f"the wheel lacks {name}" for name in IN_WHEEL if not any(one.endswith(name) for one in names)]
    others = sorted({name.split("/")[0] for name in names} - {"rowtime", f"rowtime-{version}.dist-info"})
    wrong += [f"the wheel has {name}, which is not of the package" for name in others]
    return wrong + [f"the wheel {one}" for one in _wrong_metadata(metadata, version)]


def _wrong_sdist(sdist: Path, version: str) -> list[str]:
    top = f"rowtime-{version}/"
    with tarfile.open(sdist) as opened:
        names = {name.removeprefix(top) for name in opened.getnames()}
        told = opened.extractfile(f"{top}PKG-INFO")
        assert told is not None
        metadata = told.read()
    wrong = [f"the sdist lacks {name}" for name in IN_SDIST if name not in names]
    return wrong + [f"the sdist {one}" for one in _wrong_metadata(metadata, version)]


def _wrong_metadata(text: bytes, version: str) -> list[str]:
    try:
        found = Metadata.from_email(text, validate=True)
    except Exception as error:  # noqa: BLE001 - a group of what is wrong
        return [f"has bad metadata: {error}"]
    wanted = {"name": "rowtime", "version": Version(version), "description_content_type": "text/markdown"}
    wrong = [f"says {name} = {getattr(found, name)}" for name, value in wanted.items() if getattr(found, name) != value]
    return wrong if found.description else [*wrong, "has no description"]


if __name__ == "__main__":
    command, argument = sys.argv[1:]
    if command == "set":
        set_version(argument)
    else:
        check(Path(argument))
