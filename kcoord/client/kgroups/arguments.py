"""From parsed options to the requested action, or the reason why they make no sense together.

Source: offsets.md 13.1.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar
from urllib.parse import urlsplit

from kcoord.client.kgroups.options import (
    OF_KAFKA,
    STRATEGIES,
    TAKEN_BY,
    WITH_A_PLAN,
    WITHOUT_SCOPE,
    Action,
    destination,
)
from kcoord.client.kgroups.scope import INT64_MAX, TopicScope, duration_of, instant_of, topics_of, whole_number
from kcoord.resets.strategies import PARAMETER, Strategy

T = TypeVar("T")

STATES = (
    "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable", "Dead", "Empty",
)  # fmt: skip
TYPES = ("Classic", "Consumer", "Share")
VERDICTS = (
    "uncovered", "unattended", "stalled", "unsettled", "stuck", "late", "expiring", "dead-letters", "flapping",
    "disputed", "stale",
)  # fmt: skip

LONGEST_TIMEOUT_MS = 3_600_000


class UsageError(Exception):
    """Options that make no sense; the text says why, and nothing was done."""


class View(str, Enum):
    """What --describe shows."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Reset:
    """How offsets are reset.

    `strategy` is one of the HTTP API or of `WITH_A_PLAN`; `parameters` are its fields in the API, apart from the
    content of `file`. `plan`: the plan to approve, apply or undo. `execute` False: nothing is changed; `unasked`:
    because neither was requested.
    """

    strategy: str
    parameters: Mapping[str, object]
    file: str | None
    plan: str | None
    execute: bool
    unasked: bool
    export: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """The requested action.

    `groups` and `topics` None: all of them. `states`, `types` and `verdicts` None: the column is not shown; empty: no
    filter. `label`: those that listed groups have, as written. `labels`: those to set, and with None to remove.
    `url` None: this installation.
    """

    action: Action
    groups: tuple[str, ...] | None
    topics: tuple[TopicScope, ...] | None
    view: View
    verbose: bool
    states: tuple[str, ...] | None
    types: tuple[str, ...] | None
    verdicts: tuple[str, ...] | None
    label: tuple[str, ...]
    labels: Mapping[str, str | None]
    reset: Reset | None
    regex: str
    url: str | None
    token_file: str | None
    timeout_ms: int


def check(given: argparse.Namespace) -> Arguments:
    """The requested action. Raises UsageError."""
    options = _Options(vars(given))
    for option, instead in OF_KAFKA.items():
        if options.has(option):
            raise UsageError(f"Option --{option}: {instead}")
    action = _action(options)
    for option, actions in TAKEN_BY.items():
        if options.has(option) and action not in actions:
            takers = " and ".join(f"--{taker.value}" for taker in actions)
            raise UsageError(f"Option --{option} cannot be used with --{action.value}; it is for {takers}")
    listing = action is Action.LIST
    return Arguments(
        action=action,
        groups=_groups(options, action),
        topics=_topics(options, action),
        view=_view(options, action),
        verbose=options.has("verbose"),
        states=_names(options, "state", STATES) if listing else None,
        types=_names(options, "type", TYPES) if listing else None,
        verdicts=_names(options, "verdict", VERDICTS) if listing else None,
        label=tuple(options.texts("label")) if listing else (),
        labels=_labels(options) if action is Action.SET_LABELS else {},
        reset=_reset(options) if action is Action.RESET_OFFSETS else None,
        regex=options.text(Action.VALIDATE_REGEX.value) or "",
        url=_url(options),
        token_file=_token_file(options),
        timeout_ms=options.read("timeout", lambda text: whole_number(text, 1, LONGEST_TIMEOUT_MS)),
    )


class _Options:
    """The options by name, as texts."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values

    def has(self, option: str) -> bool:
        """The option was given, even if empty."""
        value = self._values.get(destination(option))
        return value is not None and value is not False

    def text(self, option: str) -> str | None:
        """Its value."""
        value = self._values.get(destination(option))
        return value if isinstance(value, str) else None

    def texts(self, option: str) -> list[str]:
        """The values of a repeatable option, each once."""
        value = self._values.get(destination(option))
        return list(dict.fromkeys(value)) if isinstance(value, list) else []

    def read(self, option: str, parse: Callable[[str], T]) -> T:
        """Its value, parsed by `parse`. Raises UsageError."""
        try:
            return parse(self.text(option) or "")
        except ValueError as error:
            raise UsageError(f"Option --{option}: {error}") from None

    def just_one(self, of: str, *options: str) -> str:
        """The one of these options that is given. Raises UsageError for none and for several."""
        given = [option for option in options if self.has(option)]
        if len(given) != 1:
            names = ", ".join(f"--{option}" for option in options)
            several = f", not {len(given)} of them" if given else ""
            raise UsageError(f"{of} takes exactly one of these options{several}: {names}")
        return given[0]


def _action(options: _Options) -> Action:
    return Action(options.just_one("The command", *(action.value for action in Action)))


def _groups(options: _Options, action: Action) -> tuple[str, ...] | None:
    if action not in TAKEN_BY["group"]:
        return ()
    groups = options.texts("group")
    on_plan = next((option for option in WITH_A_PLAN if options.has(option)), None)
    if action is Action.DELETE_OFFSETS or on_plan:
        what = on_plan or action.value
        if len(groups) != 1 or options.has("all-groups"):
            raise UsageError(f"Option --{what} takes exactly one group: --group GROUP")
    elif options.just_one(f"Option --{action.value}", "group", "all-groups") == "all-groups":
        return None
    if "" in groups:
        raise UsageError("Option --group: the group id is empty; it has 1 to 255 characters")
    return tuple(groups)


def _topics(options: _Options, action: Action) -> tuple[TopicScope, ...] | None:
    if action not in TAKEN_BY["topic"]:
        return ()
    for strategy in WITHOUT_SCOPE:
        if options.has(strategy):
            if options.has("topic") or options.has("all-topics"):
                raise UsageError(f"Option --{strategy} determines the partitions: leave --topic and --all-topics out")
            return ()
    scopes = [option for option in ("topic", "all-topics") if action in TAKEN_BY[option]]
    if options.just_one(f"Option --{action.value}", *scopes) == "all-topics":
        return None
    try:
        return topics_of(options.texts("topic"))
    except ValueError as error:
        raise UsageError(f"Option --topic: {error}") from None


def _view(options: _Options, action: Action) -> View:
    if action is not Action.DESCRIBE:
        return View.OFFSETS
    if options.text("state"):
        raise UsageError("Option --state takes no value with --describe")
    given = [view for view in View if options.has(view.value)]
    if len(given) > 1:
        views = ", ".join(f"--{view.value}" for view in View)
        raise UsageError(f"Option --describe takes at most one of these options: {views}")
    return given[0] if given else View.OFFSETS


def _names(options: _Options, option: str, valid: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names listed in an option, in their canonical spelling."""
    if not options.has(option):
        return None
    text = options.text(option) or ""
    proper = {name.lower(): name for name in valid}
    names = [name.strip().lower() for name in text.split(",")] if text.strip() else []
    unknown = [name for name in names if name not in proper]
    if unknown:
        raise UsageError(f"Option --{option}: {unknown[0]!r} is not one of {', '.join(valid)}")
    return tuple(dict.fromkeys(proper[name] for name in names))


def _labels(options: _Options) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    for text in options.texts("label"):
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"Option --label: {text!r} is not NAME=VALUE; --remove-label NAME removes a label")
        if name in changes:
            raise UsageError(f"Option --label: {name!r} is given twice")
        changes[name] = value
    for name in options.texts("remove-label"):
        if not name or name in changes:
            raise UsageError(
                f"Option --remove-label: {name!r} is set as well" if name else "Option --remove-label: no name"
            )
        changes[name] = None
    if not changes:
        raise UsageError("Option --set-labels takes at least one of --label NAME=VALUE and --remove-label NAME")
    return changes


def _reset(options: _Options) -> Reset:
    strategy = options.just_one("Option --reset-offsets", *STRATEGIES)
    if options.has("dry-run") and options.has("execute"):
        raise UsageError("Option --reset-offsets takes only one of --dry-run and --execute")
    parameters = {} if strategy in WITH_A_PLAN else _parameters(options, Strategy(strategy))
    return Reset(
        strategy=strategy,
        parameters=parameters,
        file=options.text(Strategy.FROM_FILE.value),
        plan=options.text(strategy) if strategy in WITH_A_PLAN else None,
        execute=options.has("execute"),
        unasked=not options.has("execute") and not options.has("dry-run"),
        export=options.has("export"),
        reason=options.text("reason") or "",
    )


_READ: Mapping[Strategy, Callable[[str], object]] = {
    Strategy.TO_OFFSET: lambda text: whole_number(text, 0, INT64_MAX),
    Strategy.SHIFT_BY: lambda text: whole_number(text, -INT64_MAX, INT64_MAX),
    Strategy.TO_DATETIME: instant_of,
    Strategy.TO_COMMITTED_AT: instant_of,
    Strategy.BY_DURATION: duration_of,
    Strategy.COPY_FROM_GROUP: str,
}


def _parameters(options: _Options, strategy: Strategy) -> dict[str, object]:
    parameter = PARAMETER[strategy]
    if parameter is None or strategy not in _READ:
        return {}
    return {parameter: options.read(strategy.value, _READ[strategy])}


def _url(options: _Options) -> str | None:
    url = options.text("url")
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        well_formed = False
    if not well_formed or parts.query or parts.fragment:
        raise UsageError("Option --url: expected an address such as http://127.0.0.1:8000")
    if parts.username is not None or parts.password is not None:
        raise UsageError("Option --url: leave user and password out; the service uses a token")
    if parts.path.rstrip("/").endswith("/v1"):
        raise UsageError("Option --url: leave out /v1: it is added")
    return url.rstrip("/")


def _token_file(options: _Options) -> str | None:
    if options.has("token"):
        raise UsageError(
            "Option --token: every user of this machine can read a token on a command line; use --token-file FILE "
            "or set KCOORD_TOKEN, and replace a token passed this way"
        )
    path = options.text("token-file")
    if path is not None and not options.has("url"):
        raise UsageError("Option --token-file requires --url: without it, no token is used")
    return path
