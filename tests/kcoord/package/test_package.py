"""The package kcoord-client: what its wheel contains, and that it works in an environment that has nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

import kcoord
from kcoord.stack.install import uv_environment
from tests.kcoord.client.live import Service, running_service
from tests.support.database import cloned_database
from tests.support.fresh import UNREACHABLE
from tests.support.processes import ROOT

SECONDS = 180
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = {"assignors", "client", "protocol", "resets"}

WORKER = """
import json, sys
from kcoord.client import Consumer, Record

class Letters:
    def fetch(self, topic, partition, offset, max_records):
        return [Record(topic, partition, i, value="ab"[i]) for i in range(offset, 2)][:max_records]
    def beginning_offset(self, topic, partition):
        return 0
    def end_offset(self, topic, partition):
        return 2

topic, settings = sys.argv[1], json.loads(sys.argv[2])
values = []
with Consumer(topic, source=Letters(), enable_auto_commit=False, **settings) as consumer:
    while len(values) < 4:
        for records in consumer.poll(timeout_ms=1000).values():
            values += [record.value for record in records]
    consumer.commit()
    committed = {tp.partition: o.offset for tp, o in consumer.committed(sorted(consumer.assignment())).items()}
print(json.dumps({"values": sorted(values), "committed": committed, "modules": sorted(sys.modules), "path": sys.path}))
"""


def uv(*arguments: str | Path) -> None:
    """Run uv; skips the test if the package index cannot be reached."""
    command = [sys.executable, "-m", "uv", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=ROOT, env=uv_environment()
    )
    if done.returncode and any(sign in done.stderr for sign in UNREACHABLE):
        pytest.skip(f"the package index is unreachable: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr


def environment_of(wheel: str | Path, directory: Path) -> Path:
    """The programs of an environment in which only the wheel was installed, and what it needs."""
    uv("venv", "--quiet", "--python", sys.executable, directory)
    uv("pip", "install", "--quiet", "--python", directory, wheel)
    return directory / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from this checkout."""
    directory = tmp_path_factory.mktemp("wheel")
    uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, "--out-dir", directory, ROOT)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of programs of an environment in which only the wheel was installed."""
    return environment_of(wheel, tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def service(postgres: str) -> Iterator[Service]:
    with cloned_database(postgres) as conninfo, running_service(conninfo) as running:
        yield running


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program without the variables that would let it see this checkout."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("KCOORD_", "PYTHON", "DJANGO_"))}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=cwd, env=inherited | environment
    )


def test_wheel_contains_the_client_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"kcoord_client-{kcoord.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = f"kcoord_client-{kcoord.__version__}.dist-info"
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        scripts = archive.read(f"{info}/entry_points.txt").decode()
    assert {name.split("/")[0] for name in names} == {"kcoord", info}
    inside = {name.split("/")[1] for name in names if name.startswith("kcoord/")}
    assert inside == PACKAGES | {"__init__.py", "py.typed"}
    sources = {
        str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / "kcoord" / package).rglob("*.py")
    }
    assert sources <= set(names), "every module of these packages is in it"
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert [re.split(r"[<>=]", line)[0] for line in needed] == ["httpx", "msgspec"]
    assert all("<" in line and ">=" in line for line in needed), needed
    assert "kgroups = kcoord.client.kgroups.__main__:main" in scripts


def test_contract_forbids_everything_that_the_wheel_leaves_out() -> None:
    (contract,) = (c for c in PROJECT["tool"]["importlinter"]["contracts"] if "package kcoord-client" in c["name"])
    assert set(contract["source_modules"]) == {f"kcoord.{package}" for package in PACKAGES}
    inside = [path for path in (ROOT / "kcoord").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    modules = {path.stem for path in inside}
    left_out = {f"kcoord.{name}" for name in modules - PACKAGES - {"__init__"}}
    assert left_out <= set(contract["forbidden_modules"])


@pytest.mark.parametrize(("name", "file"), [("server", "service"), ("spark", "spark"), ("otlp", "otlp")])
def test_extra_is_the_requirements_file(name: str, file: str) -> None:
    lines = (ROOT / "deploy" / f"requirements-{file}.txt").read_text().splitlines()
    extra = PROJECT["project"]["optional-dependencies"][name]
    assert extra == [line for line in lines if line and not line.startswith("#")]


@pytest.mark.whole("installs the wheel with psycopg in an environment of its own")
def test_extra_postgres_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    python = environment_of(f"{wheel}[postgres]", tmp_path / "empty") / "python"
    program = "import kcoord.client.sources.postgres, psycopg; psycopg.pq.version()"
    done = run(python, "-c", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.processes
@pytest.mark.whole("installs the wheel in an environment of its own")
def test_worker_with_nothing_but_the_wheel(service: Service, empty: Path, tmp_path: Path) -> None:
    topic = service.topic(2)
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    done = run(empty / "python", program, topic, json.dumps(service.settings("packaged")), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["values"] == ["a", "a", "b", "b"]
    assert told["committed"] == {"0": 2, "1": 2}
    imported = {name.split(".")[0] for name in told["modules"]}
    assert not imported & {"django", "celery", "psycopg", "starlette", "groups", "offsets", "frontend", "tests"}
    assert str(ROOT) not in told["path"]
    offsets = service.request("GET", "groups/packaged/offsets").json()["offsets"]
    assert [o["committed_offset"] for o in offsets] == [2, 2]

    listed = run(empty / "kgroups", "--list", cwd=tmp_path, KCOORD_URL=service.url, KCOORD_TOKEN=service.token)
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "packaged\n", "")


@pytest.mark.whole("installs the wheel in an environment of its own")
def test_kgroups_of_the_wheel(empty: Path, tmp_path: Path) -> None:
    version = run(empty / "kgroups", "--version", cwd=tmp_path)
    assert (version.returncode, version.stdout) == (0, f"kgroups {kcoord.__version__}\n")
    unknown = run(empty / "kgroups", "--lst", cwd=tmp_path)
    assert (unknown.returncode, "--lst" in unknown.stderr) == (1, True), unknown.stderr
    kafka = run(empty / "kgroups", "--bootstrap-server", "kafka:9092", "--list", cwd=tmp_path)
    assert (kafka.returncode, "--url" in kafka.stderr) == (1, True), kafka.stderr
    regex = run(empty / "kgroups", "--validate-regex", "a", cwd=tmp_path)
    assert (regex.returncode, "manage.py kgroups" in regex.stderr) == (1, True), regex.stderr
    typed = "import kcoord, pathlib; print((pathlib.Path(kcoord.__file__).parent / 'py.typed').exists())"
    assert run(empty / "python", "-c", typed, cwd=tmp_path).stdout == "True\n"
