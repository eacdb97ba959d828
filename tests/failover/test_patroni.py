"""Fail-overs that Patroni carries out, as deploy/patroni.yml tells it to. Skipped where Patroni or etcd is missing."""

from __future__ import annotations

import asyncio
import os
import signal

import psycopg
import pytest

from tests.failover import run
from tests.failover.patroni import Cluster, cluster

pytestmark = [pytest.mark.processes, pytest.mark.whole("Patroni and etcd; the default promotes a standby itself")]


async def machine_dies(scene: run.Scene[Cluster]) -> None:
    """Postgres and its Patroni die; the other Patroni finds out, and the first comes back as a standby."""
    pair = scene.pair
    await asyncio.to_thread(pair.first.kill)
    scene.begins()
    await asyncio.to_thread(pair.wait, primary=pair.second)
    await asyncio.to_thread(pair.first.start)
    await asyncio.to_thread(pair.wait, primary=pair.second, standby=pair.first)


async def patroni_hangs(scene: run.Scene[Cluster]) -> None:
    """Patroni of the primary stops for longer than the ttl, and Postgres does not: there is no watchdog here."""
    pair = scene.pair
    assert pair.first.process is not None
    scene.begins()
    pair.first.process.send_signal(signal.SIGSTOP)
    await asyncio.to_thread(pair.wait, primary=pair.second)
    await asyncio.sleep(run.LAG_S)
    pair.first.process.send_signal(signal.SIGCONT)
    await asyncio.to_thread(pair.wait, primary=pair.second, standby=pair.first)


@pytest.mark.parametrize("fault", [machine_dies, patroni_hangs])
async def test_nothing_is_lost(fault: run.Fault[Cluster]) -> None:
    with cluster() as both:
        found = await run.fail_over(both, fault)
        with psycopg.connect(both.both) as connection:
            assert connection.execute("show synchronous_standby_names").fetchone() == ("db1",)
    if os.environ.get("FIGURES"):
        print(found)
    assert (found.missing, found.lost, found.removed, found.told_s) == (0, 0, 0, None)
    assert found.acknowledged > 100
