"""Instants, durations, ranges and ids in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontend.templatetags.kcoord_ui import breakable
from frontend.ui import wording

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("billing.eu_central-1", "billing.eu_central-1"),
        ("clickstream.sessions_eu/a:b@10.0.0.7", "clickstream.|sessions_|eu/|a:|b@|10.0.0.7"),
        ("orders-v1.2-backfill--retry.v3", "orders-|v1.2-|backfill--|retry.|v3"),
        ("g" * 240, "g" * 240),
        ("<b>-and-a-name-that-is-long", "&lt;b&gt;-|and-|a-|name-|that-|is-|long"),
    ],
)
def test_long_names_break_at_their_separators(name: str, shown: str) -> None:
    assert breakable(name) == shown.replace("|", "<wbr>")


@pytest.mark.parametrize(
    ("distance_ms", "words"),
    [
        (0, "now"),
        (999, "now"),
        (-999, "now"),
        (1_000, "1 s ago"),
        (59_999, "59 s ago"),
        (60_000, "1 min ago"),
        (3_599_999, "59 min ago"),
        (3_600_000, "1 h ago"),
        (172_799_999, "47 h ago"),
        (172_800_000, "2 days ago"),
        (NOW, "19,675 days ago"),
        (-12_400, "in 12 s"),
        (-60_000, "in 1 min"),
    ],
)
def test_ago_names_the_largest_unit_rounded_down(distance_ms: int, words: str) -> None:
    assert wording.ago(NOW - distance_ms, NOW) == words


@pytest.mark.parametrize(("lasted_ms", "words"), [(-60_000, "for 0 s"), (999, "for 0 s"), (3_599_999, "for 59 min")])
def test_what_lasts_is_said_for_how_long(lasted_ms: int, words: str) -> None:
    assert wording.lasting(NOW - lasted_ms, NOW) == words


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("billing@10.0.0.7", "billing@10.0.0.7 (3f2a81c0…)"),
        ("ledger@10.0.0.7", "ledger@10.0.0.7 (billing-3f2a81c0…)"),
        ("10.0.0.7", "10.0.0.7 (billing-3f2a81c0…)"),
        ("", "billing-3f2a81c0…"),
    ],
)
def test_a_member_is_named_once(client: str, words: str) -> None:
    member_id = "billing-3f2a81c0-1111-4222-8333-444455556666"
    assert wording.member_name(member_id, {member_id: client}) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (-5, "0 s"),
        (0, "0 s"),
        (850, "850 ms"),
        (1_000, "1 s"),
        (1_234, "1.2 s"),
        (45_000, "45 s"),
        (60_000, "1 min"),
        (299_000, "4 min 59 s"),
        (7_500_000, "2 h 5 min"),
        (9_999, "9.9 s"),
        (172_800_000, "2 days"),
        (176_400_000, "2 days 1 h"),
        (864_000_000, "10 days"),
        (NOW, "19,675 days"),
    ],
)
def test_duration(milliseconds: int, words: str) -> None:
    assert wording.duration(milliseconds) == words


@pytest.mark.parametrize(
    ("milliseconds", "words"), [(0, "0 s"), (999, "under 1 s"), (1_000, "1 s"), (7_199_000, "1 h 59 min")]
)
def test_a_time_lag_has_no_milliseconds(milliseconds: int, words: str) -> None:
    assert wording.time_lag(milliseconds) == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (500, "500"),
        (1_000, "1 k"),
        (20_000, "20 k"),
        (10**7, "10 M"),
        (2 * 10**9, "2 G"),
        (5 * 10**13, "50 T"),
    ],
)
def test_round_numbers_are_short_on_an_axis(value: int, text: str) -> None:
    assert wording.compact(value) == text


def test_instants_are_written_in_utc_to_the_millisecond() -> None:
    assert wording.instant(NOW + 7) == "2023-11-14 22:13:20.007 UTC"
    assert wording.iso(NOW + 7) == "2023-11-14T22:13:20.007Z"


@pytest.mark.parametrize(
    ("partitions", "most", "text"),
    [
        ([], None, ""),
        ([3], None, "3"),
        ([0, 1], None, "0, 1"),
        ([0, 1, 2, 3, 4, 7], None, "0–4, 7"),
        ([0, 2, 4, 6, 8], 2, "0, 2 +3"),
        ([0, 1, 2, 10, 11, 12, 20], 2, "0–2, 10–12 +1"),
        ([0, 2], 2, "0, 2"),
    ],
)
def test_ranges(partitions: list[int], most: int | None, text: str) -> None:
    assert wording.ranges(partitions, most) == text


@given(st.sets(st.integers(0, 300)))
def test_ranges_say_every_partition_exactly_once(partitions: set[int]) -> None:
    said: list[int] = []
    for part in filter(None, wording.ranges(sorted(partitions)).split(", ")):
        first, _, last = part.partition("–")
        said.extend(range(int(first), int(last or first) + 1))
    assert said == sorted(partitions)


@given(st.sets(st.integers(0, 300)), st.integers(1, 5))
def test_shortened_ranges_count_what_they_leave_out(partitions: set[int], most: int) -> None:
    text = wording.ranges(sorted(partitions), most)
    rest = re.search(r" \+(\d+)$", text)
    shown = text[: rest.start()] if rest else text
    said = 0
    for part in filter(None, shown.split(", ")):
        first, _, last = part.partition("–")
        said += int(last or first) - int(first) + 1
    assert said + int(rest[1] if rest else 0) == len(partitions)


@pytest.mark.parametrize(
    ("member_id", "short"),
    [
        ("billing-3f2a81c0-1111-4222-8333-444455556666", "billing-3f2a81c0…"),
        ("3f2a81c0-1111-4222-8333-444455556666", "3f2a81c0…"),
        ("worker-7", "worker-7"),
        ("x" * 60, "x" * 18 + "…" + "x" * 10),
        ("", ""),
    ],
)
def test_short_id(member_id: str, short: str) -> None:
    assert wording.short_id(member_id) == short


def test_plural() -> None:
    assert [wording.plural(n, "member") for n in (0, 1, 2, 1_000)] == [
        "0 members",
        "1 member",
        "2 members",
        "1,000 members",
    ]


def test_a_client_without_a_name_is_its_host() -> None:
    assert wording.client_at("billing", "10.0.0.7") == "billing@10.0.0.7"
    assert wording.client_at("", "10.0.0.7") == "10.0.0.7"
    assert wording.client_at("billing", "") == "billing"


@given(st.text(max_size=300), st.integers(10, 100))
def test_a_long_name_keeps_its_beginning_and_its_end(name: str, most: int) -> None:
    shown = wording.elided(name, most)
    if len(name) <= most:
        assert shown == name
        return
    assert len(shown) <= most
    first, last = shown.split("…", 1) if "…" not in name else (shown[: most // 2], shown[-(most // 4) :])
    assert name.startswith(first)
    assert name.endswith(last)
