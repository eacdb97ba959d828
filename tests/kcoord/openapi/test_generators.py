"""Generators of clients read the document that is served, and what they write compiles."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole("runs generators of three toolchains, which are downloaded")

SECONDS = 600
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "dial tcp", "no such host", "Unknown host", "dns error")


@pytest.fixture
def folder(django_db_setup: None, tmp_path: Path) -> Path:
    """A folder with the document as openapi.json."""
    from kcoord.control.openapi.page import document

    content = document()
    (tmp_path / "openapi.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def run(*command: str, cwd: Path) -> str:
    """What a program printed. Skips the test without the program, or if it cannot reach its registry."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on the path")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    printed = done.stdout + done.stderr
    if done.returncode and any(word in printed for word in UNREACHABLE):
        pytest.skip(f"{command[0]} cannot reach its registry: {printed[-300:]}")
    assert done.returncode == 0, printed[-3_000:]
    return printed


def test_openapi_typescript(folder: Path) -> None:
    run("npx", "--yes", "openapi-typescript@7.13.0", "openapi.json", "-o", "types.ts", cwd=folder)
    run("npx", "--yes", "-p", "typescript@5", "tsc", "--noEmit", "--strict", "types.ts", cwd=folder)
    assert "committed_offset: number" in (folder / "types.ts").read_text()


def test_oapi_codegen(folder: Path) -> None:
    run("go", "mod", "init", "kc", cwd=folder)
    run(
        "go", "run", OAPI_CODEGEN, "-generate", "types,client", "-package", "kc", "-o", "kc.go", "openapi.json",
        cwd=folder,
    )  # fmt: skip
    run("go", "mod", "tidy", cwd=folder)
    run("go", "vet", "./...", cwd=folder)


def test_openapi_python_client(folder: Path) -> None:
    run(sys.executable, "-m", "uv", "venv", "-q", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    run(
        sys.executable, "-m", "uv", "pip", "install", "-q", "--python", str(python), "openapi-python-client==0.26.2",
        "ruff", cwd=folder,
    )  # fmt: skip
    printed = run(
        str(python.with_name("openapi-python-client")), "generate", "--path", "openapi.json", "--output-path", "made",
        "--meta", "none", cwd=folder,
    )  # fmt: skip
    assert "WARNING" not in printed, "no operation is left out"
    program = (
        "import pathlib, importlib\n"
        "for file in sorted(pathlib.Path('made').rglob('*.py')):\n"
        "    importlib.import_module('.'.join(file.with_suffix('').parts))\n"
        "from made.models import JoinRequest\n"
    )
    run(str(python), "-c", program, cwd=folder)
