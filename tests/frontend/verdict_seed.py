"""Groups that need attention, for pages to show, as the checks would have stored them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.frontend.seed import Seed, member_id, now_ms, working_group

WORKER = member_id("billing", 0)


def verdict(
    seed: Seed,
    group: int,
    kind: str,
    topic: str = "",
    *,
    ms_ago: int = 95_000,
    due_in: int | None = None,
    number: int = 1,
    lag: int | None = None,
    names: Sequence[str] = (),
) -> None:
    """A verdict on a group, by the key of its row."""
    now = now_ms()
    seed.connection.execute(
        "insert into offsets_groupverdict (group_id, kind, topic, since, due_at, number, lag, names)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s)",
        [group, kind, topic, now - ms_ago, None if due_in is None else now + due_in, number, lag, list(names)],
    )


def judged(seed: Seed, *, members_ms_ago: int = 2_000, offsets_ms_ago: int = 20_000) -> None:
    """When all groups were last judged; timers and sampler ran as well."""
    now = now_ms()
    for name, at in (("members", now - members_ms_ago), ("offsets", now - offsets_ms_ago)):
        seed.connection.execute(
            "insert into offsets_verdictrun values (%s, %s) on conflict (name) do update set at = excluded.at",
            [name, at],
        )
    seed.connection.execute(
        "insert into kcoord_timerheartbeat (id, ticked_at) values (1, %s)"
        " on conflict (id) do update set ticked_at = excluded.ticked_at",
        [now - 400],
    )


def activity(seed: Seed, minutes: int = 61) -> None:
    """An hour of work, the busier the later."""
    now, lines = now_ms(), 0
    for age in reversed(range(minutes)):
        lines += 4_000 + 37 * (minutes - age) * (7 if age % 9 == 0 else 3)
        seed.connection.execute(
            "insert into offsets_activity values (%s, %s, 0, %s)",
            [now - 5_000 - 60_000 * age, lines, 6 if age % 13 == 0 else int(age % 4 == 0)],
        )


def troubled(seed: Seed) -> None:
    """One group for each verdict, two with several, and one that is well."""
    working_group(seed)
    keys = {
        name: seed.group(name, state, since_ms_ago=since)
        for name, state, since in (
            ("payments-settlement", "Stable", 3_600_000),
            ("search-index", "PreparingRebalance", 244_000),
            ("mailing", "Stable", 900_000),
            ("clickstream.sessions.eu-central-1.production", "Stable", 7_200_000),
            ("retired-importer", "Empty", 6 * 86_400_000),
            ("thumbnails", "Stable", 20_000),
            ("audit", "Stable", 90_000_000),
        )
    }
    verdict(seed, keys["payments-settlement"], "uncovered", "orders", ms_ago=3_400_000, number=2, names=("12", "13"))
    verdict(seed, keys["payments-settlement"], "late", ms_ago=27_000, due_in=18_000, names=(WORKER,))
    verdict(seed, keys["search-index"], "stuck", ms_ago=244_000, due_in=56_000, number=0)
    verdict(seed, keys["mailing"], "late", ms_ago=31_000, due_in=14_000, number=3, names=(WORKER,))
    stalled = keys["clickstream.sessions.eu-central-1.production"]
    verdict(seed, stalled, "stalled", "clicks", ms_ago=1_300_000, number=64, lag=1_204_331, names=tuple("01234"))
    verdict(seed, stalled, "stalled", "page-views", ms_ago=1_250_000, number=1, lag=77, names=("3",))
    verdict(seed, keys["retired-importer"], "expiring", "orders", ms_ago=0, due_in=40_000_000, number=12)
    verdict(seed, keys["retired-importer"], "expiring", "refunds", ms_ago=0, due_in=41_000_000, number=4)
    verdict(seed, keys["thumbnails"], "flapping", ms_ago=540_000, number=23)
    verdict(seed, keys["audit"], "stale", "ledger", ms_ago=1_440_000, number=6, names=tuple("01234"))
    judged(seed)
    activity(seed)
