"""What a button does, as commands: a request with curl, and a line for `kgroups` where that tool has the verb.

The token is not part of them: every user of a machine can read its command lines, so they use KCOORD_TOKEN.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from django.conf import settings
from django.http import HttpRequest

from frontend.ui.wording import iso
from kcoord.access.store import RuleFilter
from kcoord.resets.strategies import PARAMETER, Reset, Strategy
from offsets.share.operators import Chosen

ON_THE_MACHINE = "manage.py runs on a machine of the service, and needs no token."
TOO_LONG = "Too long for a command line: name whole topics, or send the request from a file."
LONGEST = 60_000
"""Characters; Linux takes 131,072 in one argument. A longer command would be copied and refused."""


@dataclass(frozen=True, slots=True)
class Command:
    """One action. `kgroups`, `manage` "": those tools do not have it. `note`: what to know before running it."""

    label: str
    curl: str
    kgroups: str = ""
    note: str = ""
    manage: str = ""


def service_url(asked: HttpRequest) -> str:
    """The address of the service without a slash at the end: `advertised.url`, else that of the request."""
    return settings.KCOORD.str("advertised.url").rstrip("/") or f"{asked.scheme}://{asked.get_host()}"


def curl(method: str, url: str, body: Mapping[str, object] | None = None) -> str:
    """A request with curl, quoted for a POSIX shell."""
    parts = ["curl --fail-with-body -sS", *([f"-X {method}"] if method not in ("GET", "POST") or body is None else [])]
    parts.append('-H "Authorization: Bearer $KCOORD_TOKEN"')
    if body is not None:
        parts.append("-H 'Content-Type: application/json'")
        parts.append(f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}")
    parts.append(shlex.quote(url))
    return " ".join(parts)


def request(url: str, label: str, method: str, path: str, body: Mapping[str, object] | None = None) -> Command:
    """A request to the API that no other tool has; `path` below `/v1/`."""
    return Command(label, curl(method, f"{url}/v1/{path}", body))


def kgroups(url: str, action: str, group_id: str, *options: str) -> str:
    """A line for `kgroups`; `options` are unquoted. `--option=value` is one word: values may begin with a dash."""
    words = ["kgroups", f"--url={url}", f"--{action}", f"--group={group_id}", *options]
    return " ".join(shlex.quote(word) for word in words)


def group_address(url: str, group_id: str) -> str:
    """The group in the API."""
    return f"{url}/v1/groups/{quote(group_id, safe='')}"


def hold(url: str, group_id: str, duration_ms: int, reason: str = "") -> Command:
    """Hold a group."""
    body: dict[str, object] = {"duration_ms": duration_ms, **({"reason": reason} if reason else {})}
    return Command("Hold the group", curl("POST", f"{group_address(url, group_id)}/hold", body))


def end_hold(url: str, group_id: str) -> Command:
    """End the hold of a group."""
    return Command("End the hold", curl("DELETE", f"{group_address(url, group_id)}/hold"))


def plan(url: str, group_id: str, reset: Reset, reason: str = "") -> Command:
    """Make a plan. The file of `from-file` is too large for a command: the user names it."""
    body: dict[str, object] = {"strategy": reset.strategy.value}
    name, value = PARAMETER[reset.strategy], ""
    if name == "csv":
        body["csv"] = "topic,partition,offset"
    elif name is not None:
        given = getattr(reset, name)
        body[name] = iso(given) if name == "at" else given
        value = f"={body[name]}"
    if reset.scope is not None:
        body["topics"] = [
            {"name": topic, **({} if numbers is None else {"partitions": list(numbers)})}
            for topic, numbers in reset.scope
        ]
    body |= {key: True for key in ("clamp", "keep_unknown") if getattr(reset, key)}
    body |= {"reason": reason} if reason else {}
    line, note = "", ""
    if reset.strategy is Strategy.FROM_FILE:
        line = kgroups(url, "reset-offsets", group_id, "--from-file=offsets.csv", "--dry-run", *_reason(reason))
        note = "Put the lines into offsets.csv, or into csv."
    elif reset.clamp or reset.keep_unknown:
        note = "kgroups has no options for clamping and for keeping what is not known."
    else:
        option = f"--{reset.strategy.value}{value}"
        line = kgroups(url, "reset-offsets", group_id, *topics(reset.scope), option, "--dry-run", *_reason(reason))
    return _within(
        Command("Make the plan", curl("POST", f"{group_address(url, group_id)}/offsets/plan", body), line, note)
    )


def topics(scope: Sequence[tuple[str, tuple[int, ...] | None]] | None) -> list[str]:
    """The options of `kgroups` that name partitions."""
    if scope is None:
        return ["--all-topics"]
    return [
        f"--topic={topic}" + ("" if numbers is None else f":{','.join(map(str, numbers))}") for topic, numbers in scope
    ]


def _reason(reason: str) -> list[str]:
    return [f"--reason={reason}"] if reason else []


def with_plan(url: str, group_id: str, plan_id: str, act: str) -> Command:
    """`apply`, `approve` or `undo` a plan."""
    line = kgroups(url, "reset-offsets", group_id, f"--{act}={plan_id}", "--execute")
    address = f"{group_address(url, group_id)}/offsets/plans/{plan_id}/{act}"
    return Command(f"{act.capitalize()} the plan", curl("POST", address), line)


def verify(url: str, group_id: str) -> Command:
    """Read the committed offsets and the lag."""
    return Command(
        "Verify", curl("GET", f"{group_address(url, group_id)}/lag"), kgroups(url, "describe", group_id, "--offsets")
    )


def delete_group(url: str, group_id: str) -> Command:
    """Delete a group."""
    return Command("Delete the group", curl("DELETE", group_address(url, group_id)), kgroups(url, "delete", group_id))


def delete_offsets(url: str, group_id: str, scope: Sequence[tuple[str, tuple[int, ...]]]) -> Command:
    """Delete the offsets of some partitions."""
    body = {"topics": [{"name": topic, "partitions": list(numbers)} for topic, numbers in scope]}
    line = kgroups(url, "delete-offsets", group_id, *topics(scope))
    return _within(
        Command("Delete the offsets", curl("POST", f"{group_address(url, group_id)}/offsets/delete", body), line)
    )


def create_group(url: str, group_id: str, offsets: Sequence[tuple[str, int, int]] = ()) -> Command:
    """Create a group with start offsets (topic, partition, offset)."""
    started: dict[str, list[dict[str, int]]] = {}
    for topic, partition, offset in offsets:
        started.setdefault(topic, []).append({"partition": partition, "committed_offset": offset})
    body: dict[str, object] = {"group_id": group_id}
    if started:
        body["topics"] = [{"name": topic, "partitions": partitions} for topic, partitions in started.items()]
    return _within(Command("Create the group", curl("POST", f"{url}/v1/groups", body)))


def kick(url: str, group_id: str, member_id: str, reason: str = "") -> Command:
    """Remove a member."""
    address = f"{group_address(url, group_id)}/members/{quote(member_id, safe='')}/kick"
    return Command("Remove the member", curl("POST", address, {"reason": reason} if reason else {}))


def config(url: str, group_id: str, changes: Mapping[str, object]) -> list[Command]:
    """Read and change the settings of a group; None removes an override."""
    address = f"{group_address(url, group_id)}/config"
    note = "null removes an override. kgroups has no option for settings; kafka-configs has (--entity-type groups)."
    return [
        Command("Read the settings", curl("GET", address)),
        Command("Change settings", curl("PATCH", address, changes), note=note),
    ]


def labels(url: str, group_id: str, changes: Mapping[str, str | None]) -> list[Command]:
    """Read and change the labels of a group; None removes one."""
    address = f"{group_address(url, group_id)}/labels"
    options = [
        f"--remove-label={name}" if value is None else f"--label={name}={value}" for name, value in changes.items()
    ]
    return [
        Command("Read the labels", curl("GET", address), kgroups(url, "describe", group_id, "--labels")),
        Command(
            "Change labels",
            curl("PATCH", address, {"labels": dict(changes)}),
            kgroups(url, "set-labels", group_id, *options),
        ),
    ]


def list_rules(url: str, about: RuleFilter) -> Command:
    """List rules: those about one resource, those about a kind of resource, or all."""
    query = {"resource": about.resource, "name": about.name, "pattern": None if about.name is None else "match"}
    asked = urlencode({key: value for key, value in query.items() if value is not None})
    words = ["manage.py", "acl", "--list"]
    if about.resource == "cluster":
        words.append("--cluster")
    elif about.resource is not None:
        words.append(f"--{about.resource}={about.name}" if about.name is not None else "")
    words += ["--resource-pattern-type", "match"] if about.name is not None else []
    line = " ".join(shlex.quote(word) for word in words if word)
    address = f"{url}/v1/acls{'?' + asked if asked else ''}"
    return Command("List rules", curl("GET", address), manage=f".venv/bin/python {line}", note=ON_THE_MACHINE)


def pins(url: str, group_id: str, topic: str | None, reason: str = "") -> list[Command]:
    """Pin the offsets of a topic, or of a whole group (None), and remove that pin."""
    address = f"{group_address(url, group_id)}/pins"
    body: dict[str, object] = {"topic": topic, **({"reason": reason} if reason else {})}
    query = "" if topic is None else f"?{urlencode({'topic': topic})}"
    return [
        Command("Pin", curl("POST", address, body), note="With null instead of a topic, the whole group is pinned."),
        Command(
            "Remove the pin", curl("DELETE", f"{address}{query}"), note="Without a topic: the pin of the whole group."
        ),
    ]


def operate_items(url: str, group_id: str, act: str, label: str, chosen: Sequence[Chosen], error: str) -> Command:
    """Release or reject items."""
    items = [{"topic": one.topic, "partition": one.partition, "offsets": one.offsets} for one in chosen]
    line = curl("POST", f"{group_address(url, group_id)}/items/{act}", {"items": items, "error": error or None})
    return Command(label, "", note=TOO_LONG) if len(line) > LONGEST else Command(label, line)


def resolve_dead_letters(url: str, group_id: str, act: str, label: str, ids: Sequence[int]) -> Command:
    """Replay or discard dead letters."""
    line = curl("POST", f"{group_address(url, group_id)}/dead-letters/{act}", {"ids": ids})
    return Command(label, "", note=TOO_LONG) if len(line) > LONGEST else Command(label, line)


def _within(command: Command) -> Command:
    if max(len(command.curl), len(command.kgroups)) <= LONGEST:
        return command
    return Command(command.label, "", "", TOO_LONG)
