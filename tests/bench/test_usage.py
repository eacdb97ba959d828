"""What is read of /proc and of Postgres."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.bench import usage
from tests.bench.usage import TICKS_PER_SECOND, Spent, Watched


def stat(parent: int, own: tuple[int, int], ended: tuple[int, int], name: str = "python3") -> str:
    fields = ["S", str(parent), *("0" for _ in range(9)), *map(str, own), *map(str, ended), *("0" for _ in range(30))]
    return f"77 ({name}) {' '.join(fields)}\n"


def process(proc: Path, pid: int, text: str, title: str = "", children: str = "", rss: int = 0) -> None:
    (proc / str(pid) / "task" / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "stat").write_text(text)
    (proc / str(pid) / "cmdline").write_text(title + "\0")
    (proc / str(pid) / "status").write_text(f"Name:\tx\nVmHWM:\t9 kB\nVmRSS:\t{rss} kB\n" if rss else "Name:\tx\n")
    (proc / str(pid) / "task" / str(pid) / "children").write_text(children)


def test_times_are_read_behind_a_name_with_parentheses_and_blanks() -> None:
    found = usage.parse_stat(stat(12, (3, 4), (5, 6), name="a) R 1 (b"))
    assert found.parent == 12
    assert [found.own * TICKS_PER_SECOND, found.ended * TICKS_PER_SECOND] == pytest.approx([7, 11])


def test_a_tree_counts_descendants_and_what_ended(tmp_path: Path) -> None:
    process(tmp_path, 1, stat(0, (100, 0), (10, 0)), children="2 3 ", rss=5)
    process(tmp_path, 2, stat(1, (0, 20), (0, 0)), children="4", rss=6)
    process(tmp_path, 4, stat(2, (3, 0), (0, 4)), rss=7)
    assert usage.tree(1, tmp_path) == [1, 2, 3, 4], "3 has gone meanwhile"
    assert usage.cpu_of(1, proc=tmp_path) * TICKS_PER_SECOND == pytest.approx(137)
    assert usage.own_cpu_of(1, 3, 4, proc=tmp_path) * TICKS_PER_SECOND == pytest.approx(103)
    assert usage.rss_of(1, proc=tmp_path) == 18 * 1024


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("postgres: checkpointer ", "checkpointer"),
        ("postgres: walwriter ", "WAL writer"),
        ("postgres: autovacuum launcher ", "autovacuum"),
        ("postgres: autovacuum worker kcoord", "autovacuum"),
        ("postgres: background writer ", "others"),
        ("postgres: io worker 0", "others"),
        ("postgres: postgres kcoord [local] idle", "backends"),
    ],
)
def test_postgres_processes_are_told_apart_by_their_titles(title: str, kind: str) -> None:
    assert usage.kind_of(title) == kind


def test_cpu_of_postgres_by_kind(tmp_path: Path) -> None:
    process(tmp_path, 1, stat(0, (1, 0), (50, 0)), children="2 3 4")
    process(tmp_path, 2, stat(1, (10, 0), (0, 0)), title="postgres: a b [local] idle")
    process(tmp_path, 3, stat(1, (20, 0), (0, 0)), title="postgres: c b [local] idle")
    process(tmp_path, 4, stat(1, (0, 3), (0, 0)), title="postgres: walwriter ")
    found = {kind: round(each * TICKS_PER_SECOND) for kind, each in usage.postgres_cpu(1, tmp_path).items()}
    assert found == {"backends": 30, "others": 1, "ended": 50, "WAL writer": 3}


def test_a_backend_that_ends_costs_no_less() -> None:
    before = Spent(1.0, {"backends": 5.0, "ended": 0.0}, 100)
    after = Spent(3.0, {"backends": 1.0, "ended": 6.0, "WAL writer": 0.5}, 350)
    spent = after.since(before)
    assert (spent.server, spent.in_postgres, spent.total, spent.wal) == (2.0, 2.5, 4.5, 250)


def test_our_own_cpu_time_is_found() -> None:
    before = usage.cpu_of(os.getpid())
    subprocess.run([sys.executable, "-c", "sum(range(20_000_000))"], check=True)
    assert usage.cpu_of(os.getpid()) - before > 0.05, "a child that ended and was waited for counts"


def test_a_statement_costs_wal_and_time_of_a_backend(database: str) -> None:
    watched = Watched([], database)
    before = watched.spent()
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table noise as select n, md5(n::text) from generate_series(1, 300000) n")
        spent = watched.spent().since(before)
        connection.execute("drop table noise")
    assert spent.wal is not None
    assert spent.wal > 300_000 * 36
    assert spent.in_postgres > 0.05
    assert spent.server == 0
