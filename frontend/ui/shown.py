"""What a page shows in the place of a value: known as of an instant, hidden by rules, or unknown. Pure.

A page must not write 0, none or a dash for what the viewer may not see or nobody knows. Whether something is hidden
follows from the rules of the viewer alone, never from what there is: a page says the same to somebody with few rights
whether or not there is more (http-api.md 7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from frontend.ui.rows import Millis

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A value. `as_of` (ms): when it was true; None: now. `partial`: only of what the viewer may see, in words.

    `least`: why the truth may be more, in words.
    """

    value: T
    as_of: Millis | None = None
    partial: str = ""
    least: str = ""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The rules of the viewer do not show it. `needs`: which rights would, as a sentence."""

    needs: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody knows it. `why`: as a sentence, "" if that is obvious."""

    why: str = ""


Shown = Known[T] | Hidden | Unknown
UNKNOWN = Unknown()
ON_TOPICS = "on the topics that you may see"
ALL_TOPICS = "on all topics"
OF_GROUPS = "of the groups that you may see"
HIDDEN_TOPICS = Hidden("It is known of all topics together; to see it, your account needs describe on every topic.")


def shown(value: T | None, as_of: Millis | None = None, *, why: str = "", hidden: Hidden | None = None) -> Shown[T]:
    """A value of a read model in which None stands for all that is not there.

    `hidden`: why the viewer may not see it, whatever it is; None: the viewer may. `why`: why it is not known.
    """
    if hidden is not None:
        return hidden
    return Unknown(why) if value is None else Known(value, as_of)


def time_behind(exact: Millis | None, least: Millis | None, as_of: Millis | None, why: str) -> Shown[Millis]:
    """A time lag. `least`: it is at least this, since the next record is older than all samples; None: it is exact."""
    if least is None:
        return shown(exact, as_of, why=why)
    return Known(least, as_of, least="the next record is older than the samples")


def limited(what: Shown[T], limit: str) -> Shown[T]:
    """A sum over only what the viewer may see, in words: what is unknown is so within this limit. "": no limit."""
    match what:
        case Known():
            return replace(what, partial=limit)
        case Unknown() if limit:
            return Unknown(f"{what.why or 'Not known'}, {limit}")
    return what


def cell(what: Shown[T]) -> T | str:
    """What a file has in the place of a value: nothing where it is unknown."""
    if isinstance(what, Known):
        return what.value
    return "hidden" if isinstance(what, Hidden) else ""


def shares(sizes: Mapping[str, int], most: int) -> dict[str, int]:
    """How many of each are shown when only `most` fit in total: small ones in full, large ones in equal shares."""
    given: dict[str, int] = {}
    left = most
    for name, size in sorted(sizes.items(), key=lambda item: item[1]):
        given[name] = min(size, left // (len(sizes) - len(given)))
        left -= given[name]
    return given
