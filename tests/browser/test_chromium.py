"""Where the browser comes from, and what happens without one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import chromium

pytestmark = pytest.mark.whole("of what `make test` installs, not of the product")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine without a browser; yields the only directory of its path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "none"))
    monkeypatch.delenv(chromium.REQUIRED, raising=False)
    chromium.find.cache_clear()
    yield tmp_path
    # Otherwise the browser tests that this process runs later would find none, and be skipped.
    chromium.find.cache_clear()


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(stat.S_IRWXU)
    return path


def test_a_browser_that_does_not_run_is_none(bare: Path) -> None:
    program(bare / "chromium", "exit 127")
    assert chromium.find() is None
    chromium.find.cache_clear()
    program(bare / "chromium-browser", "echo Chromium 1")
    assert chromium.find() == str(bare / "chromium-browser")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
def test_the_package_is_installed_where_it_may_be(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    works = f'[ "$1" = update ] || {{ echo "#!/bin/sh" > {bare}/chromium; /bin/chmod 755 {bare}/chromium; }}'
    program(bare / "apt-get", works)
    assert chromium.main(["--required"]) == 0
    assert chromium.find() == str(bare / "chromium")
    assert capsys.readouterr().err == ""


def test_without_any_way_it_is_one_line(
    bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = program(bare / "refused", "echo no network >&2; exit 1")
    monkeypatch.setattr(chromium, "ways", lambda: [("playwright", [[str(refused)]])])
    assert chromium.main([]) == 0
    assert chromium.main(["--required"]) == 1
    line = "Chromium cannot be installed (playwright: ['no network']); the browser tests will be skipped"
    assert capsys.readouterr().err.splitlines() == [line, line]
