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
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from msgspec import DecodeError, Struct, json

from frontend.ui.shown import Known, Shown, shown
from frontend.ui.states import State, state
from frontend.ui.verdicts import VERDICTS
from frontend.ui.viewer import Viewer
from groups.core.model.types import VerdictKind
from groups.readmodel import GroupSort
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


class _Verdict(Struct, frozen=True):
    verdict: str


class GroupThere(Struct, frozen=True):
    """A group of another service, as `GET /v1/groups` lists it. `lag` None: unknown; instants by its clock."""

    group_id: str
    type: str
    state: str
    members: int
    lag: int | None
    lag_sampled_at: datetime | None
    judged_at: datetime | None
    verdicts: list[_Verdict] = []
    unknown_partitions: int = 0

    @property
    def badge(self) -> State:
        """Its state as pages show it."""
        return state(self.state)

    @property
    def causes(self) -> Sequence[State]:
        """Its verdicts as pages show them, the worst first."""
        return [_cause(one.verdict) for one in self.verdicts]

    @property
    def behind(self) -> Shown[int]:
        """Its lag as pages show it, which may be more than what is known of it."""
        at = None if self.lag_sampled_at is None else round(self.lag_sampled_at.timestamp() * 1_000)
        lag = shown(self.lag, at, why="Its service does not know it")
        stale = any(one.verdict == VerdictKind.STALE.value for one in self.verdicts)
        least = "the end of some partitions is not known" if self.unknown_partitions else "new watermarks are missing"
        return replace(lag, least=least) if isinstance(lag, Known) and (self.unknown_partitions or stale) else lag


class _Page(Struct, frozen=True):
    groups: list[GroupThere]
    next_cursor: str | None


def _cause(name: str) -> State:
    return VERDICTS.get(name) or State(name, name, "warn", "This version does not know the verdict.")


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
    groups: Sequence[GroupThere] = ()
    more: bool = False
    failed: str = ""

    @property
    def lines(self) -> Sequence[tuple[GroupThere, str]]:
        """The groups with their pages in the dashboard of that service."""
        return [(group, f"{self.list_url}/{quote(group.group_id, safe='')}") for group in self.groups]

    @property
    def needy(self) -> Sequence[tuple[GroupThere, str]]:
        """Some of those that need attention."""
        return [(group, url) for group, url in self.lines if group.verdicts][:NEEDY_SHOWN]

    @property
    def condition(self) -> State:
        """How the service is, if `groups` begins with those that need attention."""
        needy = [group for group in self.groups if group.verdicts]
        if self.failed:
            return State("unread", "Not read", "idle", "What it has is not known now.")
        if needy:
            least = " or more" if self.more and len(needy) == len(self.groups) else ""
            verb = "needs" if len(needy) == 1 and not least else "need"
            return State(
                "needy", f"{len(needy)}{least} {verb} attention", needy[0].causes[0].tone, "Groups with a verdict."
            )
        if any(group.judged_at is None for group in self.groups):
            return State("unjudged", "Not judged", "idle", "Its groups have not been judged yet.")
        return State("well", "Healthy" if self.groups else "No groups", "good", "No group needs attention.")

    @property
    def list_url(self) -> str:
        """The list of its groups."""
        return f"{self.url}/groups"


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

    async def groups(self, query: str) -> Sequence[Found]:
        """The groups of each service that match. `query`: of `GET /v1/groups`.

        A service that does not answer in time, or not as expected, has `failed`. Raises nothing.
        """
        try:
            services = await asyncio.to_thread(read_services, self._file)
        except SecretTablesError as error:
            return [Found("Other services", "", failed=str(error))]
        return await asyncio.gather(*(self._groups(service, query) for service in services))

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
    except DecodeError:
        return _failed(service, "the answer is not that of a kcoord service")
    return Found(service.name, service.url, page.groups, page.next_cursor is not None)


def _failed(service: Service, why: str) -> Found:
    return Found(service.name, service.url, failed=why)


def elsewhere(viewer: Viewer, parameters: Mapping[str, object], lacking: Sequence[str] = ()) -> dict[str, Any]:
    """The groups of other services for a page: its context.

    `parameters`: of `GET /v1/groups`, a sequence for one that is repeated. `lacking`: what they cannot be filtered by,
    although the page is; then they are not asked.
    """
    if not settings.KCOORD.str(SERVICES_FILE):
        return {}
    if not viewer.sees_all or lacking:
        return {"elsewhere_hidden": not viewer.sees_all, "elsewhere_lacking": " and ".join(lacking)}
    query = urlencode(parameters, doseq=True)
    return {"elsewhere": bridge.call(lambda runtime: runtime.get(OtherServices).groups(query))}
