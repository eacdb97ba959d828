"""The tests: where they come from, how they are run, and which are left out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.peers.doors import FIRST

SARAMA, KAFKA_PYTHON = "v1.61.1", "3.0.12"
RECORDS = "records, which kcoord does not store"
SARAMA_LEFT_OUT = {
    RECORDS: "TestConsumerGroupDeadlock TestConsumerHighWaterMarkOffset TestFuncAdminListOffsets "
    "TestFuncConsumerGroupCooperative TestFuncConsumerGroupFuzzy TestFuncConsumerGroupStaticMembership_Basic "
    "TestFuncTxnProduceAndCommitOffset",
    "brokers that docker compose stops": "TestFuncAdminListConsumerGroupOffsets",
    "group ids with a slash, which kcoord refuses": "TestFuncJoinGroupVersionSelection",
}
ADMIN = "describe_group_exists create_delete_topics create_partitions list_partition_offsets list_config_resources "
ADMIN += "describe_topic_partitions describe_topic_partitions_pagination describe_log_dirs "
ADMIN += "describe_configs_invalid_broker_id_raises"
CONSUMER = "group heartbeat_thread consumer consumer_topics paused kafka_consumer_offsets_for_times_errors"
KAFKA_PYTHON_LEFT_OUT = {
    RECORDS: "deleting groups (2 tests), deleting records (2), and 9 of consumers",
    "ACLs, replicas, settings of brokers and topics, which kcoord has not": "9 of the admin client",
    "the version of a broker, inferred from all of its APIs": "test_kafka_version_infer",
    "a broker before 0.10.1": "test_kafka_consumer_offsets_for_time_old",
}
SERVICE = "class ExternalService:\n    def __init__(self, *where): pass\n\nSpawnedService = None\n"


@dataclass(frozen=True)
class Suite:
    """Tests of a package. `outcome`: how what `command` prints names a test and what became of it.

    `left_out`: tests by what they need.
    """

    command: Sequence[str]
    directory: Path
    env: Mapping[str, str]
    outcome: str
    left_out: Mapping[str, str]


def sarama(into: Path, toxiproxy: int) -> Suite:
    """Its functional tests. Raises CalledProcessError if the module cannot be had or built."""
    module = json.loads(_said(into, "go", "mod", "download", "-json", f"github.com/IBM/sarama@{SARAMA}"))
    source = into / "sarama"
    shutil.copytree(module["Dir"], source, copy_function=shutil.copyfile)
    source.chmod(0o755)  # in the cache of modules nothing may be written
    _said(source, "go", "test", "-c", "-tags", "functional", "-o", str(into / "functional.test"), ".")
    left_out = "|".join(" ".join(SARAMA_LEFT_OUT.values()).split())
    chosen = ["-test.run", "Group|Offset|Coordinator|Transactions", "-test.skip", f"^({left_out})$"]
    return Suite(
        [str(into / "functional.test"), "-test.v", "-test.timeout", "10m", *chosen],
        source,
        {"TOXIPROXY_ADDR": f"http://127.0.0.1:{toxiproxy}"},
        r"^--- (?P<said>PASS|FAIL|SKIP): (?P<test>\w+)",
        SARAMA_LEFT_OUT,
    )


def kafka_python(into: Path, _toxiproxy: int) -> Suite:
    """Its integration tests. Raises CalledProcessError if the sdist cannot be had."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
    _said(into, *pip, f"kafka-python=={KAFKA_PYTHON}")
    with tarfile.open(next(into.glob("kafka_python-*.tar.gz"))) as archive:
        archive.extractall(into, filter="data")
    source = into / f"kafka_python-{KAFKA_PYTHON}"
    # Two files of its tests are missing. Without the first, Python's own package `test` is imported.
    (source / "test" / "__init__.py").touch()
    (source / "test" / "service.py").write_text(SERVICE)
    chosen = [f"test/integration/test_admin_integration.py::test_{name}" for name in ADMIN.split()]
    chosen += [f"test/integration/test_consumer_integration.py::test_{name}" for name in CONSUMER.split()]
    return Suite(
        [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=short", "-o", "addopts=", *chosen],
        source,
        {"KAFKA_URI": f"kafka://127.0.0.1:{FIRST}", "KAFKA_ROOT": ".", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        r"^(?P<said>PASS|FAIL|ERROR)\w* \S+::(?P<test>\w+)",
        KAFKA_PYTHON_LEFT_OUT,
    )


SUITES = {f"sarama {SARAMA}": sarama, f"kafka-python {KAFKA_PYTHON}": kafka_python}


def _said(directory: Path, *command: str) -> str:
    env = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    return subprocess.run(command, cwd=directory, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout
