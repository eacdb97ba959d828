"""Spark's Java ends itself when its heap is full: the run says so, and which setting to raise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.offsets.spark.support import Archive, runs_of
from tests.support.database import ROOT


def test_a_full_heap_is_named_with_its_setting(archive: Archive, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.offsets.spark.hungry", archive.conninfo, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.startswith("Spark ran out of memory (512m of Java heap)"), done.stdout + done.stderr
    assert "raise KCOORD_SPARK_DRIVER_MEMORY_MB" in done.stdout
    assert runs_of(archive.conninfo) == [("reconcile", "failed", done.stdout.strip())]
