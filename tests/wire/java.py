"""Kafka's Java client and command-line tools from Maven Central, kept in a cache. Skips tests without Java or Maven."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.bench.kafka.broker import CACHE, MAVEN_SECONDS, VERSION

TOOLS, CLIENTS = "kafka-tools", "kafka-clients"
TOOL_SECONDS = 300.0
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of programs that run for seconds: what they compile and collect costs more than it saves."""
PROJECT = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


def classpath(artifact: str = TOOLS, version: str = VERSION) -> str:
    """The jars of an artifact of Kafka and of what it needs. The tools bring the client along."""
    if shutil.which("java") is None:
        pytest.skip("no java on the path")
    jars = CACHE.parent / f"{artifact}-{version}"
    if not jars.exists():
        _download(artifact, version, jars)
    return f"{jars}/*"


def _download(artifact: str, version: str, jars: Path) -> None:
    """All jars or none: a directory that is complete is renamed."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("no mvn on the path to download Kafka's jars with")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=jars.parent) as directory:
        project = Path(directory) / "pom.xml"
        project.write_text(PROJECT.format(artifact=artifact, version=version))
        target = Path(directory) / "jars"
        command = [maven, "-q", "-B", "-f", str(project), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.skip(f"Kafka's jars did not come within {MAVEN_SECONDS:g} s")
        if done.returncode != 0:
            pytest.skip(f"Kafka's jars cannot be downloaded: {done.stdout[-500:]}")
        with contextlib.suppress(OSError):  # another run was faster
            target.rename(jars)


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Where programs are compiled; it goes with this process."""
    return tempfile.TemporaryDirectory(prefix="java-")


@cache
def compiled(source: Path, jars: str) -> str:
    """The classpath of a program in one file, compiled once. Skips the test without javac."""
    if shutil.which("javac") is None:
        pytest.skip("no javac to compile a program with")
    classes = tempfile.mkdtemp(dir=_directory().name)
    command = ["javac", "-nowarn", "-d", classes, "-cp", jars, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return f"{classes}:{jars}"


def program(source: Path, jars: str | None = None, *, heap: str = "128m") -> list[str]:
    """The command that runs a program in one file; its class has the name of the file."""
    return ["java", f"-Xmx{heap}", *QUICK, "-cp", compiled(source, jars or classpath()), source.stem]


def tool(name: str, *arguments: str) -> str:
    """What a tool prints. Raises AssertionError if it fails, also where it reports that with status 0."""
    done = run(name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stdout, done.stdout + done.stderr
    return done.stdout


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end."""
    command = ["java", "-Xmx256m", *QUICK, "-cp", classpath(), name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS)


def login_of(settings: dict[str, str]) -> dict[str, str]:
    """What a client of Java needs to connect and log in, of the settings of librdkafka."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    found = {name: settings[name] for name in ("bootstrap.servers", "security.protocol", "sasl.mechanism")}
    password = settings["sasl.password"]
    return found | {"sasl.jaas.config": f'{module} required username="any" password="{password}";'}


def write_properties(path: Path, settings: dict[str, object]) -> None:
    """A file of properties."""
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
