"""What can be done, found by its words: pages, actions on a group, and the controls of the header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import NoReverseMatch, reverse

from frontend.ui.allowed import (
    ALERT_RULE,
    CREATE_GROUP,
    DELETE_GROUP,
    HOLD,
    PLAN,
    SEE_CLUSTER,
    Need,
    missing,
    tokens_missing,
)
from frontend.ui.viewer import Viewer
from kcoord.access import read_only

SMALL_WORDS = frozenset({"of", "for", "the", "a", "an", "to", "in", "on", "group"})


@dataclass(frozen=True, slots=True)
class Verb:
    """Something to do. `words`: what it may be called; `route`: the name of its page.

    `tail` is added to the address of a group: the verb is then about one. `control`: the id of a control of the header
    instead of a page. `tokens`: it is for those who manage tokens. `changes`: it is not only to look, as a `need` says
    of itself.
    """

    label: str
    words: str
    route: str = ""
    need: Need | None = None
    tokens: bool = False
    tail: str | None = None
    control: str = ""
    changes: bool = False


VERBS = (
    Verb("Overview", "overview home attention verdicts stuck health", "frontend:home"),
    Verb("Timeline", "timeline what happened incidents rebalances", "frontend:timeline"),
    Verb("Groups", "groups list", "frontend:groups"),
    Verb("Topics", "topics catalogue watermarks", "frontend:topics"),
    Verb("Archive", "archive runs spark reconcile", "frontend:archive", SEE_CLUSTER),
    Verb("Nodes", "nodes coordinators health partitions", "frontend:nodes", SEE_CLUSTER),
    Verb("Plans", "plans resets", "frontend:plans"),
    Verb("Alerts", "alerts rules receivers notifications muted", "frontend:alerts"),
    Verb("Audit", "audit changes who", "frontend:audit"),
    Verb("Health", "health readiness celery postgres", "frontend:health", SEE_CLUSTER),
    Verb("Compare groups", "compare groups lag", "frontend:compare"),
    Verb("Tokens", "tokens access rules", "frontend:tokens", tokens=True),
    Verb("Access", "access rights rules roles permissions who may", "frontend:access"),
    Verb("Create a token", "create new add token", "frontend:create-token", tokens=True, changes=True),
    Verb("Create a group", "create new add group", "frontend:create-group", CREATE_GROUP),
    Verb("New alert rule", "new create add alert rule notify", "frontend:create-alert-rule", ALERT_RULE),
    Verb("Change your password", "change password account", "frontend:password", changes=True),
    Verb("API documentation", "api documentation docs openapi", "docs"),
    Verb("Time zone: UTC or local", "time zone utc local clock", control="zone"),
    Verb("Colours: light, dark or those of the system", "theme colours dark light mode", control="theme"),
    Verb("Reset offsets of", "reset offsets plan rewind", need=PLAN, tail="/reset"),
    Verb("Hold", "hold keep out", need=HOLD, tail="/hold"),
    Verb("End the hold of", "end hold release", need=HOLD, tail="/hold"),
    Verb("Delete group", "delete remove", need=DELETE_GROUP, tail="/delete"),
    Verb("Configuration of", "configuration config settings overrides", tail="/config"),
    Verb("States of", "states state machine diagram transitions", tail="/states"),
    Verb("Pins of", "pins pin retention", tail="/pins"),
    Verb("Simulate the assignment of", "simulate assignment members partitions", tail="/simulate"),
    Verb("Rebalances of", "rebalances history episodes", tail="/rebalances"),
    Verb("Events of", "events", tail="/events"),
    Verb("Commit history of", "commits commit history journal", tail="/commits"),
    Verb("Snapshot of", "snapshot ticket markdown", tail="/snapshot.md"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A verb that was found. `about`: the words left over, which name a group; "" if nothing is left."""

    verb: Verb
    about: str


def asked(q: str) -> list[Asked]:
    """The verbs that `q` may mean: all its words begin words of the verb, or those before the name of a group."""
    written = q.split()
    found = []
    for verb in VERBS:
        used, rest = _taken(verb, written)
        if verb.tail is None:
            if used and not [word for word in rest if word.lower() not in SMALL_WORDS]:
                found.append(Asked(verb, ""))
        elif used:
            names = [word for word in rest if word.lower() not in SMALL_WORDS]
            if len(names) <= 1:
                found.append(Asked(verb, names[0] if names else ""))
    return found


def _taken(verb: Verb, written: Sequence[str]) -> tuple[int, Sequence[str]]:
    """How many words at the beginning belong to the verb, and the others."""
    words = verb.words.split()
    used = 0
    for place, word in enumerate(written):
        lowered = word.lower()
        if any(known.startswith(lowered) for known in words) and (len(lowered) > 1 or len(written) == 1):
            used += 1
        elif lowered not in SMALL_WORDS or not used:
            return used, written[place:]
    return used, ()


def address(verb: Verb) -> str | None:
    """The address of a page; None if there is no such page."""
    try:
        return reverse(verb.route)
    except NoReverseMatch:
        return None


def lacking(verb: Verb, viewer: Viewer, group_id: str | None = None) -> str:
    """Why a person may not do it, to this group or to any, as a sentence; "" if allowed."""
    lacks = tokens_missing(viewer) if verb.tokens else missing(viewer, verb.need, group_id)
    return lacks or (read_only.reason() if verb.changes else "")
