"""The rules about clients that do not do their part, tick by tick, and how many connections there may be."""

from __future__ import annotations

import resource
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from kcoord.config import Config
from kcoord.door.http.door import ambiguous_framing
from kcoord.door.http.peers import SLOWEST_BYTES_PER_SECOND, HttpPeers, Peer, PeerLimits, Peers, Phase, Reason
from kcoord.stack import server

LIMITS = PeerLimits.http(
    connections=3, from_one=0, head=4.0, body=8.0, write=12.0, largest=10 * SLOWEST_BYTES_PER_SECOND
)
"""A tick is a second."""


class Wire:
    """A connection that keeps what it is told."""

    def __init__(self, limits: PeerLimits = LIMITS, phase: Phase = Phase.SILENT) -> None:
        self.peer = Peer(limits)
        self.peer.enter(phase)
        self.buffered = 0
        self.ours = False
        self.reasons: list[Reason] = []

    def unread(self) -> int:
        return self.buffered

    def is_our_turn(self) -> bool:
        return self.ours

    def give_up(self, reason: Reason) -> None:
        self.reasons.append(reason)


@pytest.fixture
def peers() -> Peers:
    watched = HttpPeers(LIMITS)
    watched.watch(0.0)
    return watched


def ticks_until_closed(wire: Wire, most: int = 100) -> int | None:
    for tick in range(1, most + 1):
        if wire.peer.tick(1.0, wire.buffered, our_turn=wire.ours) is not None:
            return tick
    return None


@pytest.mark.parametrize(
    ("phase", "closed_after"),
    [(Phase.SILENT, 6), (Phase.HEAD, 6), (Phase.BODY, 10), (Phase.REST, 10), (Phase.WORK, None)],
)
def test_each_phase_has_its_time(phase: Phase, closed_after: int | None) -> None:
    """One tick more than the limit, or a phase that begins just before a tick would be a tick short."""
    assert ticks_until_closed(Wire(phase=phase)) == closed_after


def test_what_drips_in_does_not_prolong_a_head() -> None:
    wire = Wire(phase=Phase.HEAD)
    for _ in range(5):
        wire.peer.received(1_000_000)
        wire.peer.enter(Phase.HEAD)
        assert wire.peer.tick(1.0, 0, our_turn=False) is None
    assert wire.peer.tick(1.0, 0, our_turn=False) is Reason.HEAD


@pytest.mark.parametrize(
    ("phase", "received", "closed_after"),
    [
        (Phase.BODY, 1, 10),
        (Phase.BODY, 5 * SLOWEST_BYTES_PER_SECOND, 15),
        (Phase.BODY, 1_000 * SLOWEST_BYTES_PER_SECOND, 20),
        (Phase.REST, 1_000 * SLOWEST_BYTES_PER_SECOND, 10),
    ],
    ids=["hardly anything", "slow", "padded without end", "of a request that was answered"],
)
def test_a_body_earns_time_by_what_has_come(phase: Phase, received: int, closed_after: int) -> None:
    wire = Wire(phase=phase)
    wire.peer.received(received)
    assert ticks_until_closed(wire) == closed_after


def test_time_does_not_pass_for_a_body_that_we_do_not_take() -> None:
    wire = Wire(phase=Phase.BODY)
    wire.ours = True
    assert ticks_until_closed(wire) is None
    wire.ours = False
    assert ticks_until_closed(wire) == 10


def test_each_request_has_its_own_time() -> None:
    wire = Wire(phase=Phase.HEAD)
    for phase in (Phase.BODY, Phase.WORK, Phase.HEAD, Phase.BODY, Phase.WORK, Phase.HEAD):
        for _ in range(5):
            assert wire.peer.tick(1.0, 0, our_turn=False) is None
        wire.peer.enter(phase)
    assert ticks_until_closed(wire) == 6


def test_an_answer_that_is_not_read_has_its_time_by_its_size() -> None:
    wire = Wire(phase=Phase.WORK)
    wire.buffered = 1
    assert ticks_until_closed(wire) == 13
    wire = Wire(phase=Phase.WORK)
    wire.buffered = 20 * SLOWEST_BYTES_PER_SECOND
    wire.peer.tick(1.0, wire.buffered, our_turn=False)
    wire.buffered = 1  # reading a little of it now and then does not help
    assert ticks_until_closed(wire) == 32


def test_reading_all_of_it_or_most_of_it_begins_again() -> None:
    wire = Wire(phase=Phase.WORK)
    for _ in range(3):
        wire.buffered = 1_000
        assert ticks_until_closed(wire, 12) is None
        wire.peer.has_read()
        assert ticks_until_closed(wire, 12) is None
        wire.buffered = 0
        wire.peer.tick(1.0, 0, our_turn=False)


def test_a_process_that_was_stopped_counts_two_ticks_at_most(peers: Peers) -> None:
    wire = Wire(phase=Phase.HEAD)
    assert peers.admit(wire)
    peers.watch(3_600.0)
    peers.watch(3_601.0)
    assert wire.reasons == []
    for second in (3_602.0, 3_603.0, 3_604.0):
        peers.watch(second)
    assert wire.reasons == [Reason.HEAD]


def test_looks_between_two_ticks_count_nothing(peers: Peers) -> None:
    wire = Wire()
    peers.admit(wire)
    for number in range(500):
        peers.watch(number / 100)
    assert wire.reasons == []


def test_others_are_served_between_looks_at_two_connections(peers: Peers) -> None:
    wires = [Wire(phase=Phase.WORK) for _ in range(3)]
    for wire in wires:
        peers.admit(wire)
    looks = peers.looks(1.0)
    next(looks)
    for wire in wires:
        peers.forget(wire)  # closed meanwhile
        wire.unread = None  # type: ignore[assignment,method-assign]
    assert len(list(looks)) == len(wires) - 1


def closings(reason: Reason) -> float:
    return REGISTRY.get_sample_value("kcoord_http_connections_closed_total", {"reason": reason.value}) or 0.0


def test_connections_are_bounded_and_counted(peers: Peers) -> None:
    before = closings(Reason.LIMIT)
    wires = [Wire() for _ in range(4)]
    assert [peers.admit(wire) for wire in wires] == [True, True, True, False]
    assert REGISTRY.get_sample_value("kcoord_http_connections") == len(peers) == 3
    assert closings(Reason.LIMIT) == before + 1
    peers.forget(wires[0])
    peers.forget(wires[0])
    assert REGISTRY.get_sample_value("kcoord_http_connections") == 2
    assert peers.admit(wires[3])


def test_the_shortest_limit_gives_the_tick_and_a_second_is_the_longest() -> None:
    assert PeerLimits.of(Config({})).tick == 1.0
    assert replace(LIMITS, write=LIMITS.write._replace(seconds=0.4)).tick == 0.1


@pytest.mark.parametrize(
    ("version", "names", "wrong"),
    [
        (b"1.1", [b"host", b"content-length"], False),
        (b"1.1", [b"host", b"transfer-encoding"], False),
        (b"1.1", [b"content-length", b"transfer-encoding"], True),
        (b"1.1", [b"transfer-encoding", b"x", b"content-length"], True),
        (b"1.0", [b"transfer-encoding"], True),
        (b"1.0", [b"content-length"], False),
    ],
)
def test_the_end_of_a_body_is_said_once(version: bytes, names: list[bytes], wrong: bool) -> None:
    assert (ambiguous_framing(version, names) is not None) is wrong


@pytest.mark.parametrize(
    ("soft", "hard", "allowed", "raised"),
    [
        (20_000, 20_000, 10_000, None),
        (1_024, 65_536, 10_000, 10_256),
        (1_024, resource.RLIM_INFINITY, 10_000, 10_256),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, 10_000, None),
        (1_024, 4_096, 3_840, 4_096),
        (256, 256, 128, 256),
    ],
)
def test_there_are_no_more_connections_than_files(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, allowed: int, raised: int | None
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    assert server.connections_for(10_000) == allowed
    assert asked == ([] if raised is None else [(raised, hard)])


def test_a_limit_of_files_that_cannot_be_raised_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int, limits: tuple[int, int]) -> None:
        raise ValueError(limits)

    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, 65_536))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert server.connections_for(10_000) == 1_024 - server.OTHER_FILES
