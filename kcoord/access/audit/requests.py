"""Requests to Django in the audit: who makes them, from where, and those that are refused.

One middleware stands around the pages, the admin and the control plane of the API. What a view does is recorded by the
service that does it; what is refused, by whatever code, is recorded here, and so are sign-ins, sign-outs and wrong
passwords, by Django's signals: whatever way a person signs in.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest, UnreadablePostError
from django.http.request import RawPostDataException
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from kcoord.access.audit.acts import resource_of
from kcoord.access.audit.recording import Act, record_here
from kcoord.access.audit.refusals import Refusals, is_temporary
from kcoord.process import bridge
from kcoord.process import runtime as runtimes
from kcoord.protocol.errors import Action, ProtocolError
from kcoord.requests import current
from kcoord.requests.current import Caller, Door

log = structlog.get_logger(__name__)

API, ADMIN = "/v1/", "/admin/"
READING = frozenset({"GET", "HEAD", "OPTIONS"})
LONGEST_BODY = 65_536
"""Bytes of a body that is looked at for the name in it, if nobody else read it."""
NOT_REFUSALS = frozenset({405, 413, 415, 421})
"""Statuses of requests that nobody has looked at, or that another node has to answer."""

Handler = Callable[[HttpRequest], Any]


@sync_and_async_middleware
def Audited(get_response: Handler) -> Handler:  # noqa: N802 - settings name it like a class
    """Give each request its caller, and record it if it is refused."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            with current.calling(caller_of(request)) as caller:
                awaited: Awaitable[HttpResponseBase] = get_response(request)
                response = await awaited
                acts = refusals(request, response, caller)
                if acts and runtimes.is_running():
                    await runtimes.current().get(Refusals).note(acts, caller)
                return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        with current.calling(caller_of(request)) as caller:
            response: HttpResponseBase = get_response(request)
            note(refusals(request, response, caller), caller)
            return response

    return synchronous


def note(acts: Iterable[Act], caller: Caller | None = None) -> None:
    """Record what was refused of a request, from a thread that runs no event loop. `caller` None: the current one."""
    refused, who = list(acts), caller or current.caller()
    if not refused:
        return
    try:
        bridge.call(lambda runtime: runtime.get(Refusals).note(refused, who))
    except ProtocolError as error:
        log.warning("refusal_not_recorded", act=refused[0].act, principal=who.name, reason=error.detail)


def caller_of(request: HttpRequest) -> Caller:
    """The caller of a request that nobody has authenticated yet."""
    door = Door.HTTP if request.path.startswith(API) else Door.DASHBOARD
    door = Door.ADMIN if request.path.startswith(ADMIN) else door
    return Caller(door, address=str(request.META.get("REMOTE_ADDR") or ""), request_id=current.request_id())


def refusals(request: HttpRequest, response: HttpResponseBase, caller: Caller) -> list[Act]:
    """The records of a request that was refused, one for each thing that it names; none if it was not.

    That is one that is answered 401 or 403, or would have changed something and is answered another 4xx. A panel that
    is fetched after its session ended is not one.
    """
    status, match = response.status_code, request.resolver_match
    reads = request.method in READING
    if caller.refused or match is None or not 400 <= status < 500 or status in NOT_REFUSALS:
        return []
    if reads and (status not in (401, 403) or (status == 401 and caller.door is not Door.HTTP)):
        return []
    error, detail, action = _problem(response)
    if is_temporary(action):
        return []
    act = act_of(request)
    name = next((str(value) for value in match.kwargs.values()), "") or caller.subject
    names = ([name] if name else _subjects(request)) or [request.path if act == "request" else ""]
    return [Act(act, resource_of(act), name, reason=detail, error=error) for name in names]


def act_of(request: HttpRequest) -> str:
    """What a request is for."""
    match = request.resolver_match
    if match is None:
        return "request"
    view = getattr(match.func, "cls", None)
    if view is not None:
        return str(getattr(getattr(view, (request.method or "").lower(), None), "audit", "request"))
    if request.method in READING:
        return "request"
    page = getattr(match.func, "view_class", match.func)
    by_form: Mapping[str, str] = getattr(page, "audit_by_form", {})
    return by_form.get(request.POST.get("act", ""), getattr(page, "audit", "request"))


def _subjects(request: HttpRequest) -> list[str]:
    """The names in the query, form or body of a request that was refused before anybody read it.

    A form has several only for groups that were ticked in a list; its other names are of something else.
    """
    ticked = [name for name in dict.fromkeys(request.POST.getlist("group")) if name]
    if ticked:
        return ticked
    found = subject_of(request.GET.dict()) or subject_of(request.POST.dict() if request.POST else None)
    if found:
        return [found]
    try:
        if not 0 < int(request.headers.get("Content-Length") or 0) <= LONGEST_BODY:
            return []
        return list(filter(None, [subject_of(json.loads(request.body))]))
    except (ValueError, RecursionError, RawPostDataException, UnreadablePostError):
        return []


def subject_of(content: object) -> str:
    """What the content of a request names."""
    if not isinstance(content, Mapping):
        return ""
    names = (content.get(key) for key in ("group_id", "name", "principal", "kind", "topic", "receiver"))
    return next((name for name in names if isinstance(name, str)), "")


def _problem(response: HttpResponseBase) -> tuple[str, str, Action]:
    """The error of a problem response, its text and action; of a page its status."""
    try:
        body = json.loads(getattr(response, "content", b""))
        return str(body["error"]), str(body["detail"]), Action(body["action"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}", "", Action.FIX


SIGN_IN, SIGN_OUT = "session.sign-in", "session.sign-out"


def connect() -> None:
    """Record sessions. For `AppConfig.ready`."""
    user_logged_in.connect(_signed_in, dispatch_uid="kcoord.access.audit.signed_in")
    user_logged_out.connect(_signed_out, dispatch_uid="kcoord.access.audit.signed_out")
    user_login_failed.connect(_failed, dispatch_uid="kcoord.access.audit.login_failed")


def _signed_in(sender: Any, request: HttpRequest | None, user: Any, **kwargs: Any) -> None:
    backend = str(getattr(user, "backend", "")).rpartition(".")[2]
    current.identify(user.get_username(), account_id=user.pk)
    record_here(Act(SIGN_IN, "account", user.get_username(), after={"backend": backend}))


def _signed_out(sender: Any, request: HttpRequest | None, user: Any, **kwargs: Any) -> None:
    if user is not None:
        current.identify(user.get_username(), account_id=user.pk)
        record_here(Act(SIGN_OUT, "account", user.get_username()))


def _failed(sender: Any, credentials: Mapping[str, Any], request: HttpRequest | None = None, **kwargs: Any) -> None:
    """A wrong password. The name is recorded if it is that of an account: people type passwords into its field."""
    model = get_user_model()
    given = credentials.get(model.USERNAME_FIELD) or credentials.get("username") or ""
    name = given if model._default_manager.filter(**{model.USERNAME_FIELD: given}).exists() else ""
    caller = current.caller_of_request() or (caller_of(request) if request is not None else current.caller_of_process())
    caller.refused = True
    note([Act(SIGN_IN, "account", name, error="WRONG CREDENTIALS")], caller)
