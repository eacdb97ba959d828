"""Options that make no sense together: the reason and the help on standard error, status 1, and no request."""

from __future__ import annotations

import argparse
import io

import pytest
from django.core.management import CommandError, call_command

from kcoord.client.kgroups import options
from kcoord.client.kgroups.arguments import Arguments, UsageError, View, check
from kcoord.client.kgroups.options import STRATEGIES, TAKEN_BY, Action
from kcoord.client.kgroups.scope import TopicScope, topics_of
from tests.kcoord.kgroups.conftest import run_tool

G = ("--group", "g")
RESET = ("--reset-offsets", *G, "--topic", "t")

EXACTLY = "takes exactly one of these options"

USAGE_ERRORS: list[tuple[tuple[str, ...], str]] = [
    ((), f"The command {EXACTLY}"),
    (("--list", "--describe", *G), f"The command {EXACTLY}, not 2 of them: --list, --describe"),
    (("--list", "--validate-regex", "a"), f"The command {EXACTLY}, not 2"),
    (("--frobnicate",), "unrecognized arguments: --frobnicate"),
    (("--lis",), "unrecognized arguments: --lis"),
    (("--list", "billing"), "unrecognized arguments: billing"),
    (("--list", "--bootstrap-server", "kafka:9092"), "Option --bootstrap-server: there are no brokers"),
    (("--list", "--command-config", "c"), "Option --command-config: give the API token with --token-file"),
    (("--validate-regex",), "expected one argument"),
    # Groups
    (("--describe",), f"Option --describe {EXACTLY}: --group, --all-groups"),
    (("--delete",), f"Option --delete {EXACTLY}: --group, --all-groups"),
    (("--reset-offsets", "--topic", "t", "--to-latest"), f"Option --reset-offsets {EXACTLY}: --group"),
    (("--describe", *G, "--all-groups"), f"Option --describe {EXACTLY}, not 2 of them"),
    (("--describe", "--group", ""), "Option --group: the group id is empty"),
    (("--delete-offsets", "--topic", "t"), "Option --delete-offsets takes exactly one group"),
    (("--delete-offsets", *G, "--group", "h", "--topic", "t"), "Option --delete-offsets takes exactly one group"),
    (("--delete-offsets", "--all-groups", "--topic", "t"), "Option --all-groups cannot be used with --delete-offsets"),
    # Topics
    (("--delete-offsets", *G), f"Option --delete-offsets {EXACTLY}: --topic, --all-topics"),
    (("--reset-offsets", *G, "--to-latest"), f"Option --reset-offsets {EXACTLY}: --topic, --all-topics"),
    ((*RESET, "--all-topics", "--to-latest"), f"Option --reset-offsets {EXACTLY}, not 2"),
    (("--reset-offsets", *G, "--topic", "t:0,x", "--to-latest"), "Option --topic: 'x' is not a whole number"),
    (("--reset-offsets", *G, "--topic", "t:", "--to-latest"), "Option --topic: '' is not a whole number"),
    (("--reset-offsets", *G, "--topic", ":1", "--to-latest"), "the topic name is missing"),
    (("--reset-offsets", *G, "--topic", "t:-1", "--to-latest"), "Option --topic: '-1' is not a whole number"),
    ((*RESET, "--from-file", "f"), "Option --from-file determines the partitions"),
    ((*RESET, "--undo", "p"), "Option --undo determines the partitions"),
    (("--reset-offsets", "--all-groups", "--undo", "p"), "Option --undo takes exactly one group"),
    # Views
    (("--describe", *G, "--members", "--state"), "Option --describe takes at most one of these options"),
    (("--describe", *G, "--offsets", "--members"), "Option --describe takes at most one of these options"),
    (("--describe", *G, "--state", "stable"), "Option --state takes no value with --describe"),
    (("--list", "--state", "stable,happy"), "Option --state: 'happy' is not one of PreparingRebalance, Completing"),
    (("--list", "--type", "streams"), "Option --type: 'streams' is not one of Classic, Consumer, Share"),
    # Resets
    (RESET, f"Option --reset-offsets {EXACTLY}: --to-offset"),
    ((*RESET, "--to-latest", "--to-earliest"), f"Option --reset-offsets {EXACTLY}, not 2"),
    ((*RESET, "--to-latest", "--dry-run", "--execute"), "takes only one of --dry-run and --execute"),
    ((*RESET, "--to-offset", "1_000"), "Option --to-offset: '1_000' is not a whole number"),
    ((*RESET, "--to-offset", "-1"), "Option --to-offset: '-1' is not a whole number"),
    ((*RESET, "--to-offset", str(2**63)), "Option --to-offset: '9223372036854775808' is not a whole number"),
    ((*RESET, "--shift-by", "1.5"), "Option --shift-by: '1.5' is not a whole number"),
    ((*RESET, "--to-datetime", "2026-01-31 12:00:00.000"), "Option --to-datetime: '2026-01-31 12:00:00.000' is not"),
    ((*RESET, "--to-datetime", "2026-01-31T12:00:00"), "Option --to-datetime: '2026-01-31T12:00:00' is not"),
    ((*RESET, "--to-datetime", "2026-02-30T12:00:00.000"), "Option --to-datetime: '2026-02-30T12:00:00.000' is not"),
    ((*RESET, "--to-committed-at", "yesterday"), "Option --to-committed-at: 'yesterday' is not"),
    ((*RESET, "--by-duration", "1 day"), "Option --by-duration: '1 day' is not an ISO 8601 duration"),
    # Labels
    (("--set-labels", "--label", "a=b"), f"Option --set-labels {EXACTLY}: --group, --all-groups"),
    (("--set-labels", *G), "Option --set-labels takes at least one of --label NAME=VALUE and --remove-label NAME"),
    (("--set-labels", *G, "--label", "owner"), "Option --label: 'owner' is not NAME=VALUE; --remove-label NAME"),
    (("--set-labels", *G, "--label", "=x"), "Option --label: '=x' is not NAME=VALUE"),
    (("--set-labels", *G, "--label", "a=b", "--label", "a=c"), "Option --label: 'a' is given twice"),
    (("--set-labels", *G, "--label", "a=b", "--remove-label", "a"), "Option --remove-label: 'a' is set as well"),
    (("--set-labels", *G, "--remove-label", ""), "Option --remove-label: no name"),
    (("--describe", *G, "--labels", "--members"), "Option --describe takes at most one of these options"),
    # The service
    (("--list", "--timeout", "0"), "Option --timeout: '0' is not a whole number from 1"),
    (("--list", "--url", "kcoord:8000"), "Option --url: expected an address such as"),
    (("--list", "--url", "http://h:99999"), "Option --url: expected an address such as"),
    (("--list", "--url", "http://h/?token=x"), "Option --url: expected an address such as"),
    (("--list", "--url", "http://user:secret@h"), "Option --url: leave user and password out"),
    (("--list", "--token-file", "f"), "Option --token-file requires --url"),
    (("--list", "--url", "http://127.0.0.1:1", "--token", "kc_secret"), "Option --token: every user of this machine"),
    (("--list", "--url", "http://127.0.0.1:1", "--token"), "Option --token: every user of this machine"),
]


@pytest.mark.parametrize(("given", "told"), USAGE_ERRORS, ids=lambda value: " ".join(value) if value else "nothing")
def test_usage_errors(given: tuple[str, ...], told: str) -> None:
    run = run_tool(*given)
    reason, _, help_text = run.err.partition("\n\n")
    assert (run.status, run.out) == (1, "")
    assert told in reason
    assert help_text.startswith("usage: manage.py kgroups")
    assert "--reset-offsets" in help_text
    assert "secret" not in run.err


@pytest.mark.parametrize("option", TAKEN_BY)
def test_options_do_not_go_with_other_actions(option: str) -> None:
    actions = {
        Action.LIST: ("--list",),
        Action.DESCRIBE: ("--describe", *G),
        Action.DELETE: ("--delete", *G),
        Action.RESET_OFFSETS: RESET,
        Action.DELETE_OFFSETS: ("--delete-offsets", *G, "--topic", "t"),
        Action.VALIDATE_REGEX: ("--validate-regex", "a"),
        Action.SET_LABELS: ("--set-labels", *G, "--label", "a=b"),
    }
    value = (
        ("1",)
        if option in ("group", "topic", "reason", "label", "remove-label") or STRATEGIES.get(option, (None, ""))[0]
        else ()
    )
    for action, given in actions.items():
        if action not in TAKEN_BY[option]:
            with pytest.raises(UsageError, match=f"Option --{option} cannot be used with --{action.value}; it is for"):
                parse(*given, f"--{option}", *value)


def parse(*given: str) -> Arguments:
    """What the options ask for."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    options.declare(parser)
    return check(parser.parse_args(given))


def test_what_a_plain_command_asks_for() -> None:
    wanted = parse("--describe", "--group", "b", "--group", "a", "--group", "b")
    assert (wanted.groups, wanted.topics, wanted.view, wanted.verbose) == (("b", "a"), (), View.OFFSETS, False)
    assert (wanted.url, wanted.token_file, wanted.timeout_ms, wanted.reset) == (None, None, 30_000, None)


def test_names_are_written_properly_whatever_the_case() -> None:
    wanted = parse("--list", "--state", " stable,EMPTY,Stable", "--type", "CLASSIC")
    assert (wanted.states, wanted.types) == (("Stable", "Empty"), ("Classic",))
    unconditional = parse("--list", "--state")
    assert (unconditional.states, unconditional.types) == ((), None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (("2026-01-31T12:00:00.123",), "2026-01-31T12:00:00.123Z"),
        (("2026-01-31T12:00:00.123Z",), "2026-01-31T12:00:00.123Z"),
        (("2026-01-31T12:00:00.123+02",), "2026-01-31T10:00:00.123Z"),
        (("2026-01-31T12:00:00.123-0130",), "2026-01-31T13:30:00.123Z"),
        (("2026-01-31T12:00:00.000+05:30",), "2026-01-31T06:30:00.000Z"),
    ],
)
def test_datetimes(given: tuple[str, ...], expected: str) -> None:
    wanted = parse(*RESET, "--to-datetime", *given)
    assert wanted.reset is not None
    assert wanted.reset.parameters == {"at": expected}


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00.000+10", "9999-12-31T23:59:59.999-14:00"])
def test_a_datetime_out_of_the_calendar(at: str) -> None:
    with pytest.raises(UsageError, match=r"Option --to-datetime: .*is not an instant from"):
        parse(*RESET, "--to-datetime", at)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["t"], [TopicScope("t", None)]),
        (["t:2,0,2", "u:1"], [TopicScope("t", (0, 2)), TopicScope("u", (1,))]),
        (["t:1", "t:0"], [TopicScope("t", (0, 1))]),
        (["t:1", "t"], [TopicScope("t", None)]),
        (["t", "t:1"], [TopicScope("t", None)]),
    ],
)
def test_topics(texts: list[str], expected: list[TopicScope]) -> None:
    assert topics_of(texts) == tuple(expected)


@pytest.mark.parametrize(
    ("regex", "status", "out"),
    [
        ("orders-.*", 0, "The regular expression `orders-.*` is valid.\n"),
        ("a(b", 1, "The regular expression `a(b` is invalid: RE2 cannot read it: missing ): a(b.\n"),
        (
            r"(a)\1",
            1,
            "The regular expression `(a)\\1` is invalid: RE2 cannot read it: invalid escape sequence: \\1.\n",
        ),
    ],
)
def test_validate_regex(regex: str, status: int, out: str) -> None:
    run = run_tool("--validate-regex", regex)
    assert (run.status, run.out, run.err) == (status, out, "")


def test_through_call_command() -> None:
    out = io.StringIO()
    call_command("kgroups", validate_regex="a.*", stdout=out)
    assert out.getvalue() == "The regular expression `a.*` is valid.\n"
    with pytest.raises(CommandError, match="some actions failed"):
        call_command("kgroups", validate_regex="(", stdout=out)
    with pytest.raises(CommandError, match="takes exactly one of these options"):
        call_command("kgroups", "--list", "--describe", stdout=out)


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_option(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool(option).status == 0
    text = capsys.readouterr().out
    for name in (*TAKEN_BY, *(action.value for action in Action), "url", "token-file", "timeout"):
        assert f"--{name}" in text
    assert "--token " not in text
