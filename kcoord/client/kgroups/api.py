"""The calls of the HTTP API that the tool makes. Every method may raise ProtocolError.

Reads are repeated while the service reports that it is loading or busy, for as long as one request may take; changes
are sent once: if a change got no answer, only reading the state tells whether it took effect.
Where the service routes by owner, a node that does not coordinate a group has done nothing and names the one that does:
the request is sent there, once. A node lists the groups that it coordinates, so a list is put together from all nodes.
Source: http-api.md 3 and 4; offsets.md 8.2 and 13.3.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx
from msgspec import structs

from kcoord.client.core.http import Disconnected, NoSuchPath
from kcoord.client.core.servers import named_coordinator, permitted
from kcoord.client.core.wire import CoordinatorAnswer
from kcoord.client.http import Http, make_client
from kcoord.client.kgroups import answers
from kcoord.client.kgroups.arguments import UsageError
from kcoord.client.kgroups.scope import TopicScope
from kcoord.protocol.errors import Error, ProtocolError

T = TypeVar("T")

PAGE = 1_000
LONGEST_QUERY = 6_000
"""Maximum length of a query string; servers and proxies limit a request line to 8 KiB."""

PAUSE_MS = 200
"""Delay before a read is repeated, unless the answer specifies one."""

_LATER = (Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE)


class Api:
    """One service. Parameters: `client` sends the requests; `base_url` has no trailing slash; `token` "" for none;
    `timeout_ms` of one request, and of the repetitions of a read; `alone`: no address but `base_url` is asked.

    `notices` are warnings for the user."""

    def __init__(
        self, client: httpx.Client, base_url: str, token: str, timeout_ms: int, *, alone: bool = False
    ) -> None:
        self._http = Http(token, timeout_ms, client)
        self._url = base_url
        self._timeout_ms = timeout_ms
        self._alone = alone
        self.notices: list[str] = []

    def groups(
        self,
        states: Sequence[str] = (),
        types: Sequence[str] = (),
        verdicts: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> list[answers.GroupLine]:
        """The groups with these states, types, verdicts and labels, by id; no state (type, ...) given: all."""
        filters = {"state": states, "type": types, "verdict": verdicts, "label": labels}
        wanted = [("limit", str(PAGE)), *((name, value) for name, values in filters.items() for value in values)]
        nodes = self._nodes()
        if len(nodes) < 2:
            return self._listed(self._url, wanted)
        found: dict[str, answers.GroupLine] = {}
        for node in nodes:
            try:
                listed = self._listed(self._address(node), wanted)
            except ProtocolError as error:
                raise ProtocolError(error.error, f"node {node.node_id}: {error.detail}", action=error.action) from error
            found.update((group.group_id, group) for group in listed)
        return [found[group_id] for group_id in sorted(found)]

    def _listed(self, base: str, wanted: Sequence[tuple[str, str]]) -> list[answers.GroupLine]:
        return [group for page in self._pages("groups", wanted, answers.GroupPage, base=base) for group in page.groups]

    def _nodes(self) -> list[answers.Node]:
        """The nodes that have to be asked for their groups; fewer than two: the service at `base_url` has all."""
        if self._alone:
            return []
        try:
            found = self._get("nodes", answers.Nodes)
        except ProtocolError as error:
            if error.error is Error.CLUSTER_AUTHORIZATION_FAILED:
                self.notices.append(
                    "Warning: this token may not list the nodes of the service. If it routes by owner "
                    "(coordinator.routing=owner), only groups of the node that answered were found."
                )
                return []
            if error.error is Error.INVALID_REQUEST or isinstance(error, NoSuchPath):
                # An older service, which does not have this path.
                return []
            raise
        return [] if found.routing == "any" else [node for node in found.nodes if node.live and node.url]

    def _address(self, node: answers.Node) -> str:
        address = permitted(node.url or "", self._url)
        if address is None:
            raise ProtocolError(
                Error.INVALID_CONFIG,
                f"it advertises {node.url!r}, which cannot be used from {self._url}: let it advertise an address "
                "with the same scheme",
            )
        return address

    def group(self, group_id: str) -> answers.Group:
        """One group."""
        return self._get(f"groups/{segment(group_id)}", answers.Group)

    def labels(self, group_id: str) -> dict[str, str]:
        """The labels of a group, which need not exist."""
        return self._get(_labels_path(group_id), answers.GroupLabels).labels

    def set_labels(self, group_id: str, changes: Mapping[str, str | None]) -> dict[str, str]:
        """Set labels of a group, and remove those given as None; returns all labels."""
        body = {"labels": dict(changes)}
        send = self._http.patch
        return self._routed(self._url, _labels_path(group_id), lambda url: send(url, body, answers.GroupLabels)).labels

    def committed(self, group_id: str) -> list[answers.CommittedPartition]:
        """What a group committed, by topic and partition."""
        pages = self._pages(f"groups/{segment(group_id)}/offsets", [("limit", str(PAGE))], answers.CommittedPage)
        return [offset for page in pages for offset in page.offsets]

    def share_offsets(self, group_id: str) -> list[answers.SharePartition]:
        """How far a share group is, by topic and partition."""
        return self._get(f"groups/{segment(group_id)}/share-offsets", answers.ShareOffsets).partitions

    def watermarks(self, topic: str) -> list[answers.Watermark]:
        """Where the log of each partition begins and ends, as far as reported."""
        pages = self._pages(_watermarks_path(topic), [("limit", str(PAGE))], answers.WatermarkPage)
        return [mark for page in pages for mark in page.partitions]

    def report_truncated(self, topic: str, ends: Mapping[int, tuple[int, int]]) -> None:
        """Report logs that were truncated: partition -> where it begins and ends now."""
        marks = [
            {"partition": partition, "log_start_offset": start, "log_end_offset": end}
            for partition, (start, end) in ends.items()
        ]
        for first in range(0, len(marks), PAGE):
            body = {"partitions": marks[first : first + PAGE], "truncated": True}
            self._post(_watermarks_path(topic), body, answers.Reported)

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic."""
        return list(range(self._get(f"topics/{segment(topic)}", answers.Topic).partitions))

    def delete_groups(self, group_ids: Sequence[str]) -> list[answers.DeletedGroup]:
        """Delete groups; the result for each, in the order given."""
        results = self._deleted(self._url, group_ids)
        strays = [group_id for group_id in group_ids if results[group_id].error_code == Error.NOT_COORDINATOR.code]
        for base, its_own in self._coordinators(strays).items():
            try:
                results |= self._deleted(base, its_own)
            except ProtocolError as error:
                # The results of the others must not be lost.
                failure = error.error.code, error.error.name, error.detail
                results |= {group_id: answers.DeletedGroup(group_id, *failure) for group_id in its_own}
        return [results[group_id] for group_id in group_ids]

    def _deleted(self, base: str, group_ids: Sequence[str]) -> dict[str, answers.DeletedGroup]:
        results: dict[str, answers.DeletedGroup] = {}
        for query in _queries("group_id", group_ids):
            found = self._routed(base, f"groups?{query}", lambda url: self._http.delete(url, answers.DeletedGroups))
            results.update((group.group_id, group) for group in found.groups)
        return results

    def _coordinators(self, group_ids: Sequence[str]) -> dict[str, list[str]]:
        """Address -> the groups that are coordinated there; those of which that is not known are left out."""
        found: dict[str, list[str]] = {}
        for query in _queries("group_id", group_ids):
            try:
                entries = self._get(f"coordinator?{query}", CoordinatorAnswer).coordinators
            except ProtocolError:
                continue
            for entry in entries:
                address = permitted(entry.url or "", self._url)
                if entry.error_code == Error.NONE.code and address is not None:
                    found.setdefault(address, []).append(entry.key)
        return found

    def delete_offsets(self, group_id: str, topics: Mapping[str, Sequence[int]]) -> list[answers.DeletedTopic]:
        """Delete committed offsets; the result for each."""
        body = {"topics": [{"name": topic, "partitions": list(numbers)} for topic, numbers in topics.items()]}
        return self._post(f"groups/{segment(group_id)}/offsets/delete", body, answers.DeletedOffsets).topics

    def plan(
        self,
        group_id: str,
        strategy: str,
        topics: Sequence[TopicScope] | None,
        parameters: Mapping[str, object],
        reason: str,
    ) -> answers.Plan:
        """Create a reset plan and return it in full; `topics` None: those of the strategy or of the group's commits."""
        body: dict[str, Any] = {"strategy": strategy, **parameters}
        if topics is not None:
            body["topics"] = [
                {"name": scope.topic, "partitions": None if scope.partitions is None else list(scope.partitions)}
                for scope in topics
            ]
        if reason:
            body["reason"] = reason
        planned = self._post(f"groups/{segment(group_id)}/offsets/plan", body, answers.Plan)
        if planned.next_cursor is None:
            return planned
        rest = self.find_plan(group_id, planned.id, after=planned.next_cursor).partitions
        return structs.replace(planned, partitions=[*planned.partitions, *rest], next_cursor=None)

    def find_plan(self, group_id: str, plan_id: str, after: str | None = None) -> answers.Plan:
        """The current state of a plan, with all its lines, or those after a cursor."""
        pages = list(self._pages(_plan_path(group_id, plan_id), [("limit", str(PAGE))], answers.Plan, after))
        lines = [line for page in pages for line in page.partitions]
        return structs.replace(pages[-1], partitions=lines)

    def apply(self, group_id: str, plan_id: str) -> None:
        """Apply a plan."""
        self._post(f"{_plan_path(group_id, plan_id)}/apply", {}, answers.Plan)

    def approve(self, group_id: str, plan_id: str) -> None:
        """Approve a plan that someone else made."""
        self._post(f"{_plan_path(group_id, plan_id)}/approve", {}, answers.Plan)

    def undo(self, group_id: str, plan_id: str) -> None:
        """Undo an applied plan."""
        self._post(f"{_plan_path(group_id, plan_id)}/undo", {}, answers.Plan)

    def _pages(
        self,
        path: str,
        parameters: Sequence[tuple[str, str]],
        kind: type[T],
        cursor: str | None = None,
        base: str | None = None,
    ) -> Iterator[T]:
        while True:
            query = urlencode([*parameters, *([("cursor", cursor)] if cursor is not None else [])])
            page = self._get(f"{path}?{query}", kind, base)
            yield page
            cursor = getattr(page, "next_cursor", None)
            if cursor is None:
                return

    def _get(self, path: str, kind: type[T], base: str | None = None) -> T:
        return self._repeated(lambda: self._routed(base or self._url, path, lambda url: self._http.get(url, kind)))

    def _post(self, path: str, body: Mapping[str, Any], kind: type[T]) -> T:
        return self._routed(self._url, path, lambda url: self._http.post(url, body, kind))

    def _routed(self, base: str, path: str, send: Callable[[str], T]) -> T:
        """Send to `base`, then once to the coordinator that it names if it is not the one."""
        try:
            return send(f"{base}/v1/{path}")
        except ProtocolError as error:
            coordinator = None if self._alone else named_coordinator(error, base)
            if coordinator is None:
                raise
        return send(f"{coordinator}/v1/{path}")

    def _repeated(self, read: Callable[[], T]) -> T:
        deadline = time.monotonic() + self._timeout_ms / 1000
        while True:
            try:
                return read()
            except ProtocolError as error:
                pause_s = (PAUSE_MS if error.retry_after_ms is None else error.retry_after_ms) / 1000
                if (
                    error.error not in _LATER
                    or isinstance(error, Disconnected)
                    or time.monotonic() + pause_s >= deadline
                ):
                    raise
                time.sleep(pause_s)


def _labels_path(group_id: str) -> str:
    return f"groups/{segment(group_id)}/labels"


def _watermarks_path(topic: str) -> str:
    return f"topics/{segment(topic)}/watermarks"


def _plan_path(group_id: str, plan_id: str) -> str:
    return f"groups/{segment(group_id)}/offsets/plans/{segment(plan_id)}"


def segment(name: str) -> str:
    """A name as one segment of a path; `.` and `..` would be treated as relative path segments."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _queries(name: str, values: Sequence[str]) -> Iterator[str]:
    """Query strings that together repeat a parameter for each value, none of them too long."""
    parts: list[str] = []
    for part in (urlencode([(name, value)]) for value in values):
        if parts and sum(map(len, parts)) + len(parts) + len(part) > LONGEST_QUERY:
            yield "&".join(parts)
            parts = []
        parts.append(part)
    if parts:
        yield "&".join(parts)


TOKEN_VARIABLE = "KCOORD_TOKEN"  # noqa: S105 - the name of a variable


@contextmanager
def service_at(url: str, token_file: str | None, timeout_ms: int) -> Iterator[Api]:
    """The service at `url`, with the token of `token_file`, else of KCOORD_TOKEN. Raises UsageError."""
    token = _token(token_file)
    with make_client() as client:
        yield Api(client, url, token, timeout_ms)


def _token(path: str | None) -> str:
    """The token for --url. Raises UsageError if none is given, without quoting what was found."""
    if path is None:
        token, where = os.environ.get(TOKEN_VARIABLE, ""), TOKEN_VARIABLE
    else:
        where = f"the file {path!r}"
        try:
            token = Path(path).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            what = "it does not contain a token" if isinstance(error, UnicodeDecodeError) else error.strerror
            raise UsageError(f"Option --token-file: {where} cannot be read: {what}") from None
    token = token.strip()
    if not token:
        raise UsageError(f"Option --url needs a token: --token-file FILE or {TOKEN_VARIABLE}; {where} is empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError(f"Option --url needs a token, and {where} does not contain a valid one")
    return token
