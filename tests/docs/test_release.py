"""What `make release` changes in the sources; its builds and environments are tested when it runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
CHANGES = "# Changelog\n\n## Unreleased\n\n### Added\n\n- a thing\n\n## 0.1.0 - 2026-01-01\n\n- the first\n"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, over files of its own."""
    spec = importlib.util.spec_from_file_location("release_under_test", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    monkeypatch.setattr(made, "MODULE", tmp_path / "__init__.py")
    monkeypatch.setattr(made, "CHANGELOG", tmp_path / "CHANGELOG.md")
    (tmp_path / "__init__.py").write_text('"""x"""\n__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGES)
    return made


def test_a_version_gets_what_is_unreleased_once(release: ModuleType, tmp_path: Path) -> None:
    release.set_version("0.7.0")
    text = (tmp_path / "CHANGELOG.md").read_text()
    assert [line.split(" - ")[0] for line in text.splitlines() if line.startswith("## ")] == [
        "## Unreleased",
        "## 0.7.0",
        "## 0.1.0",
    ]
    assert text.index("## 0.7.0") < text.index("- a thing") < text.index("## 0.1.0")
    assert '__version__ = "0.7.0"' in (tmp_path / "__init__.py").read_text()
    release.set_version("0.7.0")
    assert (tmp_path / "CHANGELOG.md").read_text() == text


@pytest.mark.parametrize(
    ("version", "told"),
    [("next", "is no version"), ("0.0.9", "is below it"), ("0.02", "usual form: 0.2"), ("", "is no version")],
)
def test_other_versions_are_refused(release: ModuleType, tmp_path: Path, version: str, told: str) -> None:
    with pytest.raises(SystemExit, match=told):
        release.set_version(version)
    assert (tmp_path / "CHANGELOG.md").read_text() == CHANGES


def test_there_must_be_something_to_release(release: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text(CHANGES.replace("- a thing\n", ""))
    with pytest.raises(SystemExit, match="nothing to release"):
        release.set_version("0.7.0")


def test_missing_builds_are_reported(release: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        release.check(tmp_path)
    assert "rowtime-0.1.0-py3-none-any.whl was not built" in capsys.readouterr().err
