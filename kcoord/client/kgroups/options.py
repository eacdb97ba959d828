"""The options of the tool: their help, and which action takes which.

Source: offsets.md 13.1.
"""

from __future__ import annotations

import argparse
from enum import Enum

from kcoord.resets.strategies import Strategy

APPROVE, APPLY, UNDO = "approve", "apply", "undo"
WITH_A_PLAN = (APPROVE, APPLY, UNDO)
"""In addition to the strategies: what can be done with a plan that exists."""


class Action(str, Enum):
    """What the tool does; each is an option, and exactly one is given."""

    LIST = "list"
    DESCRIBE = "describe"
    DELETE = "delete"
    RESET_OFFSETS = "reset-offsets"
    DELETE_OFFSETS = "delete-offsets"
    SET_LABELS = "set-labels"
    ACCEPT_TRUNCATION = "accept-truncation"
    VALIDATE_REGEX = "validate-regex"


OF_KAFKA = {
    "bootstrap-server": "there are no brokers: give the address of the service as --url, such as http://127.0.0.1:8000",
    "command-config": "give the API token with --token-file FILE, or set KCOORD_TOKEN",
}
"""Options of kafka-consumer-groups that have no counterpart: what to do instead."""

_ON_GROUPS = (Action.DESCRIBE, Action.DELETE, Action.RESET_OFFSETS, Action.SET_LABELS)
_ON_TOPICS = (Action.RESET_OFFSETS, Action.DELETE_OFFSETS)
_RESET = (Action.RESET_OFFSETS,)

STRATEGIES: dict[str, tuple[str | None, str]] = {
    Strategy.TO_OFFSET.value: ("OFFSET", "this offset, or the nearest that the log has"),
    Strategy.TO_EARLIEST.value: (None, "where the log begins"),
    Strategy.TO_LATEST.value: (None, "where the log ends"),
    Strategy.TO_CURRENT.value: (None, "what is committed, else where the log ends"),
    Strategy.SHIFT_BY.value: ("N", "what is committed plus N, which may be negative"),
    Strategy.TO_DATETIME.value: ("DATETIME", "the log as of YYYY-MM-DDTHH:mm:SS.sss, in UTC unless a zone follows"),
    Strategy.BY_DURATION.value: ("DURATION", "the log as of this long ago, as in PT30M or P1DT2H"),
    Strategy.FROM_FILE.value: ("FILE", "the offsets of a CSV file written by --export"),
    Strategy.TO_COMMITTED_AT.value: ("DATETIME", "what the group itself had committed at this instant (not in Kafka)"),
    Strategy.COPY_FROM_GROUP.value: ("GROUP", "what another group has committed (not in Kafka)"),
    APPROVE: ("PLAN", "those of a plan that someone else made, which may then be applied (not in Kafka)"),
    APPLY: ("PLAN", "those of a plan that exists, for example since it was approved (not in Kafka)"),
    UNDO: ("PLAN", "what was committed before the plan with this id was applied (not in Kafka)"),
}
"""Option -> name of its value, help. Exactly one is given with --reset-offsets."""

WITHOUT_SCOPE = (Strategy.FROM_FILE.value, *WITH_A_PLAN)
"""These determine the partitions themselves."""

TAKEN_BY: dict[str, tuple[Action, ...]] = {
    "group": (*_ON_GROUPS, Action.DELETE_OFFSETS),
    "all-groups": _ON_GROUPS,
    "topic": (*_ON_TOPICS, Action.ACCEPT_TRUNCATION),
    "all-topics": _ON_TOPICS,
    "members": (Action.DESCRIBE,),
    "offsets": (Action.DESCRIBE,),
    "state": (Action.DESCRIBE, Action.LIST),
    "labels": (Action.DESCRIBE,),
    "label": (Action.LIST, Action.SET_LABELS),
    "remove-label": (Action.SET_LABELS,),
    "verbose": (Action.DESCRIBE,),
    "type": (Action.LIST,),
    "verdict": (Action.LIST,),
    "dry-run": _RESET,
    "execute": _RESET,
    "export": _RESET,
    "reason": _RESET,
    **dict.fromkeys(STRATEGIES, _RESET),
}
"""Option -> the actions that accept it. Options not listed are accepted by all of them."""


def destination(option: str) -> str:
    """The attribute in which the parser stores an option."""
    return option.replace("-", "_")


def declare(
    parser: argparse.ArgumentParser, service: str = "the service (without --url: this installation, without a token)"
) -> None:
    """Add every option to a parser. Values remain texts: `kcoord.client.kgroups.arguments` parses them.

    `service`: the heading of the options that select it.
    """
    _declare_actions(parser.add_argument_group("actions (exactly one)"))
    _declare_scope(parser.add_argument_group("groups and topics"))
    views = parser.add_argument_group("with --describe and --list")
    for option, text in {
        "offsets": "offsets and lag; the default of --describe",
        "members": "the members",
        "labels": "the labels (not in Kafka)",
        "verbose": "more columns",
    }.items():
        _flag(views, option, text)
    text = "--describe: the state of the group. --list: the states too, or only groups in STATES"
    views.add_argument("--state", nargs="?", const="", metavar="STATES", help=text)
    text = "--list: the types too, or only groups of TYPES (classic, consumer, share)"
    views.add_argument("--type", nargs="?", const="", metavar="TYPES", help=text)
    text = "--list: the verdicts too, or only groups with VERDICTS: what needs attention (not in Kafka)"
    views.add_argument("--verdict", nargs="?", const="", metavar="VERDICTS", help=text)
    labels = parser.add_argument_group("labels")
    text = "--set-labels: set this label. --list: only groups that have it, or NAME with any value; repeatable"
    labels.add_argument("--label", action="append", metavar="NAME=VALUE", help=text)
    text = "--set-labels: remove this label; repeatable"
    labels.add_argument("--remove-label", action="append", metavar="NAME", help=text)
    _declare_reset(parser.add_argument_group("with --reset-offsets"))
    _declare_service(parser.add_argument_group(service))


def _declare_actions(actions: argparse._ArgumentGroup) -> None:
    _flag(actions, Action.LIST.value, "list the groups")
    _flag(actions, Action.DESCRIBE.value, "describe groups: offsets, members, state or labels")
    _flag(actions, Action.DELETE.value, "delete groups that have no members, with all their offsets")
    _flag(actions, Action.RESET_OFFSETS.value, "set the offsets of groups that have no members")
    _flag(actions, Action.DELETE_OFFSETS.value, "delete offsets of a group")
    _flag(actions, Action.SET_LABELS.value, "set and remove labels of groups (not in Kafka)")
    text = "let the earlier ends count that were reported of topics whose logs were truncated (not in Kafka)"
    _flag(actions, Action.ACCEPT_TRUNCATION.value, text)
    text = "check a regular expression against the syntax of the service (RE2)"
    actions.add_argument(f"--{Action.VALIDATE_REGEX.value}", metavar="REGEX", help=text)


def _declare_scope(scope: argparse._ArgumentGroup) -> None:
    scope.add_argument("--group", action="append", metavar="GROUP", help="a group; repeatable")
    _flag(scope, "all-groups", "every group")
    text = "all partitions of a topic, or those listed; repeatable"
    scope.add_argument("--topic", action="append", metavar="TOPIC[:P,P]", help=text)
    _flag(scope, "all-topics", "every partition on which the group has committed an offset")


def _declare_reset(reset: argparse._ArgumentGroup) -> None:
    for option, (value, text) in STRATEGIES.items():
        if value is None:
            _flag(reset, option, text)
        else:
            reset.add_argument(f"--{option}", metavar=value, help=text)
    _flag(reset, "dry-run", "show what would change; change nothing")
    _flag(reset, "execute", "do it")
    _flag(reset, "export", "print CSV for --from-file instead of a table")
    reset.add_argument("--reason", metavar="TEXT", help="why; recorded in the plan")


def _declare_service(service: argparse._ArgumentGroup) -> None:
    service.add_argument("--url", metavar="URL", help="address of a running service, such as https://kcoord.example")
    text = "file with the API token for --url; without it, the environment variable KCOORD_TOKEN"
    service.add_argument("--token-file", metavar="FILE", help=text)
    # Declared so that a secret given with it is not repeated in the error about an unknown option.
    service.add_argument("--token", nargs="?", const="", help=argparse.SUPPRESS)
    # Those of Kafka's tool: an error that says what to give instead.
    for option in OF_KAFKA:
        service.add_argument(f"--{option}", nargs="?", const="", help=argparse.SUPPRESS)
    text = "milliseconds that one request may take (default: %(default)s)"
    service.add_argument("--timeout", metavar="MS", default="30000", help=text)


def _flag(group: argparse._ArgumentGroup, option: str, text: str) -> None:
    group.add_argument(f"--{option}", action="store_true", help=text)
