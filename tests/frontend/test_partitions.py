"""Colours of owners, and how the picture of partitions is shared out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from frontend.pages.group.map import COLOURS, colours, read_colours
from frontend.ui.shown import shares

OWNERS = st.dictionaries(st.text(max_size=3), st.integers(1, 10**9), max_size=40).map(
    lambda owners: {name: pk for pk, name in {pk: name for name, pk in owners.items()}.items()}
)


@given(OWNERS)
def test_owners_have_different_colours_as_long_as_there_are_enough(owners: dict[str, int]) -> None:
    chosen = colours(owners, {})
    assert chosen.keys() == owners.keys()
    assert all(0 <= colour < COLOURS for colour in chosen.values())
    assert len(set(chosen.values())) == min(len(owners), COLOURS)


@given(OWNERS, st.data())
def test_colours_stay_while_others_come_and_go(owners: dict[str, int], data: st.DataObject) -> None:
    before = {name: pk for name, pk in owners.items() if data.draw(st.booleans())}
    after = {name: pk for name, pk in owners.items() if name not in before or data.draw(st.booleans())}
    first = colours(before, {})
    if len(before) > COLOURS:
        return  # colours repeat then, and the page is not told to keep them
    second = colours(after, {before[name]: colour for name, colour in first.items()})
    stayed = before.keys() & after.keys()
    assert {name: second[name] for name in stayed} == {name: first[name] for name in stayed}


def test_a_newcomer_does_not_get_the_colour_of_who_has_just_left() -> None:
    assert colours({"a": 1, "c": 3}, {1: 0, 2: 1}) == {"a": 0, "c": 2}


def test_colours_of_a_page_are_read_back() -> None:
    assert read_colours("12:0,15:11") == {12: 0, 15: 11}


@given(st.text())
def test_colours_that_we_did_not_write_are_left_out(text: str) -> None:
    kept = read_colours(text)
    assert all(0 <= colour < COLOURS for colour in kept.values())
    assert len(set(kept.values())) == len(kept) <= COLOURS


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 5_000), max_size=20), st.integers(0, 3_000))
def test_shares_give_as_much_as_fits_and_cut_only_the_large(sizes: dict[str, int], most: int) -> None:
    given_ = shares(sizes, most)
    assert given_.keys() == sizes.keys()
    assert all(given_[name] <= sizes[name] for name in sizes)
    assert sum(given_.values()) <= most
    if sum(sizes.values()) <= most:
        assert given_ == sizes
    cut = [given_[name] for name in sizes if given_[name] < sizes[name]]
    if cut:
        assert max(cut) - min(cut) <= 1
        assert all(given_[name] <= max(cut) for name in sizes)
