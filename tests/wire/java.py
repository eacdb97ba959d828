"""Kafka's Java client and command-line tools from Maven Central, kept in a cache. Skips tests without Java or Maven."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.bench.kafka.broker import CACHE, MAVEN_SECONDS, VERSION

JARS = CACHE.parent / f"kafka-tools-{VERSION}"
TOOL_SECONDS = 300.0
PROJECT = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tests</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""


def classpath() -> str:
    """The jars of the client and the tools."""
    if shutil.which("java") is None:
        pytest.skip("no java on the path")
    if not JARS.exists():
        _download()
    return f"{JARS}/*"


def _download() -> None:
    """All jars or none: a directory that is complete is renamed."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip("no mvn on the path to download Kafka's jars with")
    JARS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=JARS.parent) as directory:
        project = Path(directory) / "pom.xml"
        project.write_text(PROJECT)
        target = Path(directory) / "jars"
        command = [maven, "-q", "-B", "-f", str(project), "dependency:copy-dependencies", f"-DoutputDirectory={target}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.skip(f"Kafka's jars did not come within {MAVEN_SECONDS:g} s")
        if done.returncode != 0:
            pytest.skip(f"Kafka's jars cannot be downloaded: {done.stdout[-500:]}")
        with contextlib.suppress(OSError):  # another run was faster
            target.rename(JARS)


def tool(name: str, *arguments: str) -> str:
    """What a tool prints. Raises AssertionError if it fails, also where it reports that with status 0."""
    done = run(name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Error" not in done.stdout, done.stdout + done.stderr
    return done.stdout


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end."""
    command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath(), name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS)
