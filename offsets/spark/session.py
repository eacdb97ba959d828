"""Spark for one run: on loopback, without a UI, quiet, with its files in the data directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from offsets.spark.archive.address import spark_options
from offsets.spark.errors import JobError, first_line
from offsets.spark.java import find_java, java_home
from offsets.spark.runs import Run
from offsets.spark.source import PostgresSource

CODE = Path(__file__).resolve().parent.parent.parent
"""The directory of kcoord's packages."""

SHIPPED = (
    "kcoord/__init__.py",
    "kcoord/database/__init__.py",
    "kcoord/database/sql/*",
    "offsets/__init__.py",
    "offsets/spark/**/*",
    "offsets/core/**/*",
)
"""The packages that Python workers on other machines import."""

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit` for the Python program that it starts."""

LOCAL = re.compile(r"local(\[.*\])?$")
_OURS = re.compile(r"(?:SourceError|JobError): (?P<text>[^\n]+)")
_CAUSE = re.compile(r"^: (?P<text>.+)$", re.MULTILINE)
"""Py4J's first line says what was called, its second one what went wrong."""
_ROOT = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
"""The last one is what to act on, such as a full disk; Spark's own line names the files that it was writing."""
_NO_STORE = re.compile(r"(?P<what>No FileSystem for scheme \"?\w+|Class org\.apache\.hadoop\.fs\.\S+ not found)")
_HEAP_FULL = re.compile(r"\b(Spark)?OutOfMemoryError\b|UNABLE_TO_ACQUIRE_MEMORY")
OUT_OF_MEMORY_STATUS = 52
"""The exit status of Spark's Java after an OutOfMemoryError (`SparkExitCode.OOM`)."""
LOST = (Py4JError, ConnectionError)
"""What a call of Java raises when Java is gone: Py4J passes on that nobody accepts its connection."""
ENDING_SECONDS = 20
"""How long Java may take to end after it closed its connections."""
OUT_OF_MEMORY = (
    "Spark ran out of memory ({memory} of Java heap), and nothing of this step was published: raise "
    "KCOORD_SPARK_DRIVER_MEMORY_MB, or the memory of the executors if KCOORD_SPARK_MASTER is a cluster"
)
_MODULE = "offsets.spark"
_RULES = "org.apache.spark.sql.execution.adaptive"


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The options for starting Spark.

    `master` in Spark's notation, `directory` for spilled data (in the data directory), memory of the driver in MB.
    """

    master: str
    directory: Path
    memory_mb: int = 1024


@contextmanager
def spark_session(settings: SparkSettings) -> Iterator[SparkSession]:
    """A running Spark, stopped at the end. Raises JobError if it cannot start, for example without Java."""
    spark = start_spark(settings)
    try:
        yield spark
    finally:
        with suppress(Py4JError, OSError):  # Java may have ended itself; the error of the block says why
            spark.stop()


def start_spark(settings: SparkSettings, environ: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark, or use the session of this process. Raises JobError.

    Under `spark-submit` Spark's Java is running already: where executors run, and with how much memory, is its to say.
    """
    variables = os.environ if environ is None else environ
    submitted = SUBMITTED in variables
    java = None if submitted else find_java(variables)
    try:
        (settings.directory / "local").mkdir(parents=True, exist_ok=True)
        home = java_home(java, settings.directory) if java is not None else None
        log_settings = settings.directory / "log4j2.properties"
        log_settings.write_text(files(_MODULE).joinpath("log4j2.properties").read_text())
    except OSError as error:
        raise JobError(f"{settings.directory} cannot be written: {error.strerror}; see KCOORD_DATA_DIR") from error
    is_local = not submitted and LOCAL.match(settings.master) is not None
    _find_our_code(is_local)
    builder = SparkSession.builder.appName("kcoord")
    if not submitted:
        builder = builder.master(settings.master)
    for name, value in {**_settings(settings, log_settings, is_local), **spark_options(variables)}.items():
        builder = builder.config(name, value)
    try:
        with _java_home(home):
            spark = builder.getOrCreate()
        if not is_local:
            spark.sparkContext.addPyFile(str(_shipped(settings.directory)))
        spark.dataSource.register(PostgresSource)
    except (PySparkException, Py4JError, OSError) as error:
        where = "where spark-submit says" if submitted else f"at {settings.master}"
        raise JobError(f"Spark does not start {where}: {explained(error)}") from error
    return spark


@contextmanager
def _java_home(home: Path | None) -> Iterator[None]:
    """Only for the launcher: the next start would take our script for Java and make it call itself."""
    if home is None:
        yield
        return
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["JAVA_HOME"]
        if before is not None:
            os.environ["JAVA_HOME"] = before


def _settings(settings: SparkSettings, log_settings: Path, is_local: bool) -> dict[str, str]:
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": f"{settings.memory_mb}m",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_settings.as_uri()}",
        "spark.local.dir": str(settings.directory / "local"),
        "spark.sql.warehouse.dir": str(settings.directory / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        # Without it Spark refuses a source that defines pushFilters.
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        # It would drop the counts of observations along with an empty table.
        "spark.sql.adaptive.optimizer.excludedRules": f"{_RULES}.AQEPropagateEmptyRelation",
        # A flipped bit in a file is an error instead of a wrong row.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        # Files are published by our own log entry; these markers would only clutter the folder.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if is_local:
        found |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return found


def _find_our_code(is_local: bool) -> None:
    """Python workers inherit the environment, not this process's sys.path.

    Those of other machines get our code sent, and their Python may be elsewhere: PYSPARK_PYTHON says where.
    """
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_local:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(CODE) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(CODE), *filter(None, paths)])


def _shipped(directory: Path) -> Path:
    """Our code as a zip file for executors on other machines."""
    target = directory / "kcoord-spark.zip"
    fresh = directory / f"kcoord-spark.zip.{os.getpid()}"  # another run may be sending it at this moment
    with zipfile.ZipFile(fresh, "w") as archive:
        for pattern in SHIPPED:
            for path in CODE.glob(pattern):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(CODE))
    fresh.replace(target)
    return target


@contextmanager
def guarded(run: Run, spark: SparkSession) -> Iterator[None]:
    """A block of a run that uses Spark: its progress is shown, it can be cancelled, and errors are reduced to one line.

    Raises RunCancelled, JobError.
    """
    context = spark.sparkContext
    tracker = context.statusTracker()
    memory = context.getConf().get("spark.driver.memory", "the default")

    def progress() -> tuple[int, int]:
        try:
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        except LOST:
            return 0, 0  # Spark is ending
        found = [stage for stage in stages if stage is not None]
        return sum(one.numCompletedTasks for one in found), sum(one.numTasks for one in found)

    run.progress, run.on_cancel = progress, context.cancelAllJobs
    try:
        yield
    except (PySparkException, *LOST) as error:
        run.check()
        if ran_out_of_memory(context, error):
            raise JobError(OUT_OF_MEMORY.format(memory=memory)) from error
        raise JobError(explained(error)) from error
    finally:
        run.progress = run.on_cancel = None


def ran_out_of_memory(context: SparkContext, error: Exception) -> bool:
    """Whether Java's heap was too small. Java then ends itself, and the error is any that its ending causes."""
    if _HEAP_FULL.search(str(error)):
        return True
    java = getattr(context._gateway, "proc", None)  # none under spark-submit, which started Java itself
    if java is None or not _is_ending(context):
        return False
    try:
        return bool(java.wait(ENDING_SECONDS) == OUT_OF_MEMORY_STATUS)
    except subprocess.TimeoutExpired:
        return False


def _is_ending(context: SparkContext) -> bool:
    try:
        return bool(context._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True


def explained(error: Exception) -> str:
    """One line for a Spark error: what our source said, a missing library, else the last cause and its first line."""
    text = str(error)
    if match := _OURS.search(text):
        return match["text"].strip()
    if match := _NO_STORE.search(text):
        return f"Spark lacks the library for the archive's path ({match['what']}); see docs/archive.md, “Object stores”"
    cause = _CAUSE.search(text) if isinstance(error, Py4JError) else None
    said = cause["text"].strip() if cause else first_line(error)
    roots = _ROOT.findall(text)
    return f"{roots[-1].strip()} ({said})" if roots else said
