"""Assignors by name, those of installed packages included."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from kcoord.assignors import (
    AssignorLoadError,
    MemberSubscription,
    RangeAssignor,
    RebalanceProtocol,
    UnknownAssignorError,
    get_assignor,
    known_assignors,
    registry,
)

Install = Callable[[str, str], None]
MODULES = """
    class Everything:
        name = "everything-to-one"
        protocols = ("eager",)
        def assign(self, partitions_per_topic, subscriptions, partition_racks=None):
            first = min(member.member_id for member in subscriptions)
            return {first: {topic: list(range(count)) for topic, count in partitions_per_topic.items()}}

    INSTANCE = Everything()
    def make(): return Everything()
    class Nameless: pass
    def fails(): raise RuntimeError("no licence")
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """`install(distribution, entry points)` puts a package with these entry points on the path."""
    (tmp_path / "acme_assignors.py").write_text(dedent(MODULES))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.forget()

    def install(distribution: str, entries: str) -> None:
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[kcoord.assignors]\n{entries}\n")

    yield install
    registry.forget()
    sys.modules.pop("acme_assignors", None)


def test_the_built_in_assignors() -> None:
    assert known_assignors() == ("range", "roundrobin", "sticky", "cooperative-sticky")
    for name in known_assignors():
        assert get_assignor(name).name == name
    eager, cooperative = RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE
    assert get_assignor("sticky").protocols == (eager,)
    assert get_assignor("cooperative-sticky").protocols == (cooperative, eager)


@pytest.mark.parametrize("value", ["Everything", "INSTANCE", "make"])
def test_an_assignor_of_an_installed_package(install: Install, value: str) -> None:
    install("acme", f"everything-to-one = acme_assignors:{value}")
    assert known_assignors()[-1] == "everything-to-one"
    assignor = get_assignor("everything-to-one")
    members = [MemberSubscription("b", None, ["t"]), MemberSubscription("a", None, ["t"])]
    assert assignor.assign({"t": 2}, members) == {"a": {"t": [0, 1]}}
    assert get_assignor("everything-to-one") is assignor


def test_packages_are_looked_through_once(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any request may name an assignor that is not there; going through all packages takes tens of milliseconds."""
    asked: list[str] = []
    monkeypatch.setattr(registry, "entry_points", lambda group: asked.append(group) or [])
    for name in ("uniform", "other", "uniform"):
        with pytest.raises(UnknownAssignorError):
            get_assignor(name)
    assert asked == [registry.ENTRY_POINT_GROUP]


def test_an_unknown_name_is_answered_with_the_known_ones(install: Install) -> None:
    install("acme", "everything-to-one = acme_assignors:Everything")
    with pytest.raises(UnknownAssignorError) as raised:
        get_assignor("uniform")
    assert str(raised.value) == (
        "no assignor is named 'uniform'; available: range, roundrobin, sticky, cooperative-sticky, everything-to-one"
    )


@pytest.mark.parametrize(
    ("entry", "name", "message"),
    [
        ("gone = acme_assignors:Gone", "gone", "cannot be imported: AttributeError"),
        ("gone = no_such_module:Gone", "gone", "cannot be imported: ModuleNotFoundError"),
        ("fails = acme_assignors:fails", "fails", "cannot be imported: RuntimeError('no licence')"),
        ("nameless = acme_assignors:Nameless", "nameless", "is not an assignor: it has no name, protocols, assign"),
        ("other = acme_assignors:Everything", "other", "has the name 'everything-to-one'"),
    ],
)
def test_a_broken_package_is_named(install: Install, entry: str, name: str, message: str) -> None:
    install("acme", entry)
    with pytest.raises(AssignorLoadError) as raised:
        get_assignor(name)
    assert message in str(raised.value)
    assert entry.split(" = ")[1] in str(raised.value)


def test_two_packages_with_one_name_are_refused(install: Install) -> None:
    install("acme", "everything-to-one = acme_assignors:Everything")
    install("other", "everything-to-one = acme_assignors:INSTANCE")
    with pytest.raises(AssignorLoadError, match="published more than once"):
        get_assignor("everything-to-one")


def test_a_built_in_name_cannot_be_taken_over(install: Install) -> None:
    install("acme", "range = acme_assignors:Everything")
    assert isinstance(get_assignor("range"), RangeAssignor)
    assert known_assignors().count("range") == 1
