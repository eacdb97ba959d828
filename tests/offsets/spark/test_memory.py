"""Spark's Java ends itself when its heap is full: the run says so, and which setting to raise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offsets.spark.errors import JobError
from offsets.spark.session import OUT_OF_MEMORY_STATUS, guarded
from tests.offsets.spark.support import Archive, runs_of
from tests.support.database import ROOT


@pytest.mark.whole("test_round_trip has Spark archive, restore and reconcile")
def test_a_full_heap_is_named_with_its_setting(archive: Archive, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.offsets.spark.hungry", archive.conninfo, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.startswith("Spark ran out of memory (512m of Java heap)"), done.stdout + done.stderr
    assert "raise KCOORD_SPARK_DRIVER_MEMORY_MB" in done.stdout
    assert runs_of(archive.conninfo) == [("reconcile", "failed", done.stdout.strip())]


class _Context:
    """Spark's context, once Java has ended itself with a status."""

    def __init__(self, status: int) -> None:
        self._gateway = SimpleNamespace(proc=SimpleNamespace(wait=lambda _seconds: status))

    @property
    def _jsc(self) -> Any:
        raise ConnectionRefusedError(111, "Connection refused")

    def statusTracker(self) -> Any:
        return SimpleNamespace(getActiveStageIds=lambda: self._jsc)

    def getConf(self) -> dict[str, str]:
        return {"spark.driver.memory": "512m"}

    def cancelAllJobs(self) -> None:
        raise AssertionError("nobody cancels")


@pytest.mark.parametrize(("status", "said"), [(OUT_OF_MEMORY_STATUS, "Spark ran out of memory"), (1, "Errno 111")])
def test_java_that_refuses_connections_has_ended(status: int, said: str) -> None:
    run: Any = SimpleNamespace(check=lambda: None, progress=None, on_cancel=None)
    with pytest.raises(JobError, match=re.escape(said)):
        _use_lost_java(run, status)
    assert run.progress is None


def _use_lost_java(run: Any, status: int) -> None:
    spark: Any = SimpleNamespace(sparkContext=_Context(status))
    with guarded(run, spark):
        assert run.progress() == (0, 0)
        raise ConnectionRefusedError(111, "Connection refused")
