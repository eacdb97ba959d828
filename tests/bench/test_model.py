"""The capacity model: constants that made the points are found again, and what does not fit is told."""

from __future__ import annotations

from math import log10

import pytest

from tests.bench import model
from tests.bench.figures import Figure, Point, Results
from tests.bench.model import checks_of, constants_of, stored

FLUSH_MS = 200
RATE = 10_000.0
BEAT, TENFOLD, STORED = (20.0, 2.0), (1.5, 0.0), (3.0, 12.0)
SEVERAL, CROWDED = 0.7, 0.1
COMMIT, OFFSET = (50.0, 40.0), (4.0, 15.0)


def heartbeat(curve: str, x: float, members: float) -> Point:
    """As a service costs whose constants are those above."""
    share = stored(RATE, members, FLUSH_MS)
    part = SEVERAL * (1 + max(0, x - 2) * CROWDED) if curve == "processes" and x > 1 else 1.0
    server, postgres = (
        part * (BEAT[side] + model.tenfolds(members) * TENFOLD[side] + share * STORED[side]) for side in (0, 1)
    )
    more = {
        "rate": RATE,
        "members": members,
        "stored": share,
        "wal_bytes": 5 + 90 * share,
        "rss_mb": 100 + 0.002 * members,
    }
    return Point(curve, x, server, postgres, more | {"idle_server_us_s": 900.0, "idle_postgres_us_s": 300.0})


def commit(partitions: int) -> Point:
    server, postgres = (COMMIT[side] + partitions * OFFSET[side] for side in (0, 1))
    return Point("partitions", partitions, server, postgres, {"wal_bytes": 200 + 300 * partitions})


def results() -> Results:
    points = [heartbeat("members", members, members) for members in (10, 1_000, 100_000)]
    points += [heartbeat("group size", 3, 3_000), *(heartbeat("processes", x, 10_000) for x in (1, 2, 3, 4))]
    points += [commit(partitions) for partitions in (1, 5, 20, 50)]
    points.append(Point("tick", 100, 30.0, 60.0))
    beats = 0.7 * (BEAT[0] + BEAT[1] + log10(1.4) * TENFOLD[0]) + 0.7 * stored(0.7 * RATE, 1_400, FLUSH_MS) * (
        STORED[0] + STORED[1]
    )
    commits = 0.2 * (COMMIT[0] + COMMIT[1] + 5 * (OFFSET[0] + OFFSET[1]))
    points.append(
        Point(
            "mixed",
            RATE,
            beats + commits + 0.1 * 30,
            0,
            {"members": 1_400, "stored": 0.7 * stored(0.7 * RATE, 1_400, FLUSH_MS)},
        )
    )
    # Heartbeats of which no session is stored.
    most = {"server_us": BEAT[0] + 2 * TENFOLD[0], "postgres_us": BEAT[1] + 2 * TENFOLD[1], "wal_bytes": 5.0}
    steady = Figure("members.100000", "100,000 members", 1, "µs", "1,000", 1, most)
    fetch = Figure("fetches", "fetches", 1, "/s", "echo", 1, {"server_us": 10.0, "postgres_us": 20.0})
    return Results({"flush_ms": FLUSH_MS}, [fetch, steady], points)


def test_the_constants_that_made_the_points_are_found() -> None:
    found = constants_of(results())
    expected = {
        "heartbeat_server_us": 20,
        "heartbeat_postgres_us": 2,
        "tenfold_server_us": 1.5,
        "tenfold_postgres_us": 0,
        "stored_session_server_us": 3,
        "stored_session_postgres_us": 12,
        "stored_session_wal_bytes": 90,
        "commit_server_us": 50,
        "offset_postgres_us": 15,
        "offset_wal_bytes": 300,
        "server_mb": 100,
        "member_kb": 2,
        "idle_member_server_us_a_second": 0,
        "tick_postgres_us": 60,
        "fetch_of_5_server_us": 10,
        "several": SEVERAL,
        "crowded": CROWDED,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)


def test_predictions_from_their_own_constants_are_right() -> None:
    checks = checks_of(results(), constants_of(results()))
    assert {one.name for one in checks} >= {
        "heartbeat, 1,000 members",
        "memory, 1,000 members",
        "heartbeat, groups of 3",
        "heartbeat, 1 process",
        "heartbeat, 3 processes",
        "commit of 20 offsets",
        "WAL, commit of 20 offsets",
        "mixed load, a request",
    }
    assert [one for one in checks if abs(one.error) > 1e-6] == []
    fitted = ("10 members", "2 processes", "4 processes")
    assert not [one for one in checks if one.name.endswith(fitted)], "fitted points are not checked"


def test_what_does_not_fit_is_told() -> None:
    run = results()
    run.points = [point for point in run.points if point.x != 20] + [
        Point("partitions", 20, 1_000.0, 0.0, {"wal_bytes": 6_200})
    ]
    (wrong,) = [one for one in checks_of(run, constants_of(run)) if not one.is_within]
    assert wrong.name == "commit of 20 offsets"
    assert wrong.error == pytest.approx(470 / 1_000 - 1)
    assert "above 20%" in model.table([wrong])
