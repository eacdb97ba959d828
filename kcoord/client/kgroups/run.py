"""One run of the tool, from checked arguments to an exit status."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kcoord.client.kgroups.api import Api
from kcoord.client.kgroups.arguments import Arguments
from kcoord.client.kgroups.deleting import delete_groups, delete_offsets
from kcoord.client.kgroups.describing import describe
from kcoord.client.kgroups.labelling import set_labels
from kcoord.client.kgroups.listing import list_groups
from kcoord.client.kgroups.options import Action
from kcoord.client.kgroups.output import Output, reason
from kcoord.client.kgroups.resetting import reset_offsets
from kcoord.client.kgroups.truncation import accept_truncation
from kcoord.protocol.errors import ProtocolError

SUCCESS, FAILURE = 0, 1

_VERBS: Mapping[Action, Callable[[Arguments, Api, Output], None]] = {
    Action.LIST: list_groups,
    Action.DESCRIBE: describe,
    Action.DELETE: delete_groups,
    Action.RESET_OFFSETS: reset_offsets,
    Action.DELETE_OFFSETS: delete_offsets,
    Action.SET_LABELS: set_labels,
    Action.ACCEPT_TRUNCATION: accept_truncation,
}


def run(arguments: Arguments, api: Api, output: Output) -> int:
    """Perform the requested action. Returns SUCCESS, or FAILURE if any part of it failed."""
    try:
        _VERBS[arguments.action](arguments, api, output)
    except ProtocolError as error:
        output.error(f"The command failed: {reason(error)}")
    for notice in dict.fromkeys(api.notices):
        output.notice(notice)
    return FAILURE if output.failed else SUCCESS


def validate_regex(regex: str, problem: str | None, output: Output) -> int:
    """Print whether the service accepts a regular expression; no request is sent.

    `problem`: the error from RE2, if any. Differs from Kafka: one that is not valid is a failure.
    """
    if problem is not None:
        output.line(f"The regular expression `{regex}` is invalid: {problem}.")
        return FAILURE
    output.line(f"The regular expression `{regex}` is valid.")
    return SUCCESS
