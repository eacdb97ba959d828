"""Other kcoord services whose groups the pages show beside those of this one.

The file `dashboard.services.file` names them; a table of it is a service (see `kcoord.secret_tables`):

    [payments]
    url = "https://kcoord.payments.example.com"
    token = "..."                               # of that service, with a rule that may describe groups and topics

Nothing is changed there, and nothing of it is stored here. The rules of this service say nothing about the groups of
another one, so only people who see everything here see them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from msgspec import DecodeError, Struct, convert, json

from frontend.ui.rows import Millis
from frontend.ui.states import State
from frontend.ui.verdicts import verdict_state
from frontend.ui.viewer import Viewer
from groups.readmodel import GroupSort, GroupSummary
from kcoord.door.http.outgoing import OutgoingError, exchange
from kcoord.process import bridge
from kcoord.process.runtime import Runtime
from kcoord.secret_tables import SecretTablesError, is_http_address, read_secret_tables
from kcoord.setting_table import SERVICES_FILE

TIMEOUT_SECONDS = 2.0
"""How long a service may take to answer. A page waits for all of them together."""
REPEATED_SECONDS = 10.0
"""A service is not asked the same thing again before: pages read everything again every few seconds."""
MOST_KEPT = 200
"""Answers kept by one process."""
NEEDY_SHOWN = 5
"""Groups of a service that the overview names because they need attention."""
WORST_FIRST = {"sort": GroupSort.SEVERITY.value, "limit": NEEDY_SHOWN + 1}
"""Asks for those of the overview, and whether there are more."""
FIELDS = {"url", "token"}
INSTANTS = ("state_since", "held_until", "lag_sampled_at", "judged_at", "updated_at")


class _Verdict(Struct, frozen=True):
    verdict: str
    since: datetime


class _Page(Struct, frozen=True):
    groups: list[dict[str, Any]]
    next_cursor: str | None


def _summary(line: Mapping[str, Any]) -> GroupSummary:
    """A line of `GET /v1/groups`, by the clock of its service, without what only pages list. Raises ValidationError."""
    verdicts = convert(line.get("verdicts"), list[_Verdict])
    given = dict(line, pk=0, partitions=None, verdicts=[(one.verdict, _ms(one.since)) for one in verdicts])
    given |= {name: _ms(convert(line.get(name), datetime | None)) for name in INSTANTS}
    return convert(given, GroupSummary)


def _ms(at: datetime | None) -> Millis | None:
    return None if at is None else round(at.timestamp() * 1_000)


@dataclass(frozen=True, slots=True)
class Service:
    """Another service. `url`: where its pages and its API are, without a slash at the end."""

    name: str
    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Found:
    """What a service answered. `more`: it has other groups that match; `failed`: why nothing is known, else ""."""

    service: str
    url: str
    groups: Sequence[GroupSummary] = ()
    more: bool = False
    failed: str = ""

    def group_url(self, group_id: str) -> str:
        """The page of a group in the dashboard of that service."""
        return f"{self.url}/groups/{quote(group_id, safe='')}"

    @property
    def needy(self) -> Sequence[tuple[str, str, str]]:
        """Some of those that need attention: id, page and why."""
        return [
            (group.group_id, self.group_url(group.group_id), ", ".join(verdict_state(kind).label for kind, _ in why))
            for group in self.groups
            if (why := group.verdicts)
        ][:NEEDY_SHOWN]

    @property
    def condition(self) -> State:
        """How the service is, if `groups` begins with those that need attention."""
        needy = [group for group in self.groups if group.verdicts]
        if self.failed:
            return State("unread", "Not read", "idle", "What it has is not known now.")
        if needy:
            least = " or more" if self.more and len(needy) == len(self.groups) else ""
            verb = "needs" if len(needy) == 1 and not least else "need"
            tone = verdict_state(needy[0].verdicts[0][0]).tone
            return State("needy", f"{len(needy)}{least} {verb} attention", tone, "Groups with a verdict.")
        if any(group.judged_at is None for group in self.groups):
            return State("unjudged", "Not judged", "idle", "Its groups have not been judged yet.")
        return State("well", "Healthy" if self.groups else "No groups", "good", "No group needs attention.")


def read_services(path: str) -> Sequence[Service]:
    """The services of a file in its order; none for an empty path. Raises SecretTablesError."""
    return [_service(name, table) for name, table in read_secret_tables(SERVICES_FILE, path, "service", FIELDS).items()]


def _service(name: str, table: Mapping[str, str]) -> Service:
    here = f"{SERVICES_FILE}: service {name!r}"
    missing = sorted(FIELDS - table.keys())
    if missing:
        raise SecretTablesError(f"{here}: {missing[0]} is missing")
    parts = urlsplit(table["url"]) if is_http_address(table["url"]) else None
    if parts is None or parts.query or parts.fragment or parts.username is not None:
        raise SecretTablesError(f"{here}: url is not an http or https address without user, query and fragment")
    if not table["token"].isascii() or not table["token"].isprintable() or not table["token"].strip():
        raise SecretTablesError(f"{here}: token is not that of a service, which has printable ASCII characters only")
    return Service(name, table["url"].rstrip("/"), table["token"])


@dataclass(slots=True)
class _Kept:
    found: Found | None = None
    until: float = 0.0
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)


class OtherServices:
    """Asks the services, and keeps what each answered for REPEATED_SECONDS."""

    def __init__(self, runtime: Runtime) -> None:
        self._file = runtime.config.str(SERVICES_FILE)
        self._kept: dict[tuple[Service, str], _Kept] = {}

    async def groups(self, parameters: Mapping[str, object], after: Mapping[str, str]) -> Sequence[Found]:
        """The groups of each service that match. `parameters`: of `GET /v1/groups`; `after`: cursors by service.

        A service that does not answer in time, or not as expected, has `failed`. Raises nothing.
        """
        try:
            services = await asyncio.to_thread(read_services, self._file)
        except SecretTablesError as error:
            return [Found("Other services", "", failed=str(error))]
        asked = [{**parameters, "cursor": after.get(service.name) or ()} for service in services]
        queries = [urlencode(one, doseq=True) for one in asked]
        return await asyncio.gather(*map(self._groups, services, queries))

    async def _groups(self, service: Service, query: str) -> Found:
        key = service, query
        kept = self._kept.pop(key, None) or _Kept()
        self._kept[key] = kept  # the one used last comes last
        if len(self._kept) > MOST_KEPT:
            self._kept.pop(next(iter(self._kept)))
        async with kept.reading:
            if kept.found is None or time.monotonic() >= kept.until:
                kept.found = await _ask(service, query)
                kept.until = time.monotonic() + REPEATED_SECONDS
            return kept.found


async def _ask(service: Service, query: str) -> Found:
    headers = {"Authorization": f"Bearer {service.token}", "Accept": "application/json"}
    try:
        answer = await exchange("GET", f"{service.url}/v1/groups?{query}", TIMEOUT_SECONDS, headers=headers)
    except OutgoingError as error:
        return _failed(service, str(error))
    if answer.status == 401:
        return _failed(service, "it refused the token")
    if answer.status != 200:
        return _failed(service, f"the answer was {answer.status}")
    try:
        page = json.decode(answer.body, type=_Page)
        groups = [_summary(line) for line in page.groups]
    except DecodeError:
        return _failed(service, "the answer is not that of a kcoord service, or of an older version")
    return Found(service.name, service.url, groups, page.next_cursor is not None)


def _failed(service: Service, why: str) -> Found:
    return Found(service.name, service.url, failed=why)


def elsewhere(
    viewer: Viewer, parameters: Mapping[str, object], after: Mapping[str, str] | None = None, lacking: str = ""
) -> dict[str, Any]:
    """The groups of other services for a page: its context.

    `parameters`: of `GET /v1/groups`, a sequence for one that is repeated; `after`: cursors by service. `lacking`: what
    their API has not although the page asks for it; then they are not asked.
    """
    if not settings.KCOORD.str(SERVICES_FILE):
        return {}
    if not viewer.sees_all or lacking:
        return {"elsewhere_hidden": not viewer.sees_all, "elsewhere_lacking": lacking}
    return {"elsewhere": bridge.call(lambda runtime: runtime.get(OtherServices).groups(parameters, after or {}))}
