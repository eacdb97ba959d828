"""The base of the control plane's views: strict requests, the caller, and what the caller may see.

Separate from `kcoord.control.rest.base`, which Django REST framework imports before it has views.
Source: http-api.md 1 and 7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, TypeVar

from django.db import connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.urls import register_converter
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, ListField, Serializer
from rest_framework.views import APIView

from kcoord.access.audit.requests import subject_of
from kcoord.access.quotas.quotas import Quotas
from kcoord.access.rights import CLUSTER_NAME, Principal, Resource
from kcoord.control.rest.answers import shown
from kcoord.control.rest.base import NOTHING_HERE, first_complaint
from kcoord.control.rest.fields import PageQuery
from kcoord.database.paging import Page, Visible, cut, decode_cursor, encode_cursor
from kcoord.database.sql import queries
from kcoord.door.http import paths, problem
from kcoord.process import bridge
from kcoord.process import runtime as runtimes
from kcoord.process.runtime import Runtime
from kcoord.requests import current

T = TypeVar("T")


class AlwaysJSON(BaseContentNegotiation):
    """Only one representation exists, and Accept does not change it; the data plane answers the same way."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """The one parser; it refuses other content types itself."""
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The one renderer."""
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class StrictRequest(Request):
    """A request whose body is read however it is announced: Django REST framework overlooks a chunked one."""

    body_size = 0
    """Of the body, as far as it was read."""

    def _load_stream(self) -> None:
        content = self._request.read()
        self.body_size = len(content)
        self._stream: Any = BytesIO(content) if content else None


class ControlView(APIView):
    """The base of the control plane's views."""

    http_method_names = ["get", "head", "post", "put", "patch", "delete"]
    content_negotiation_class = AlwaysJSON

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """The request, as `StrictRequest` reads it."""
        return StrictRequest(
            request,
            parsers=self.get_parsers(),
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
            parser_context=self.get_parser_context(request),
        )

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """The response, which lets go of what it was rendered from."""
        final = super().finalize_response(request, response, *args, **kwargs)
        if isinstance(final, Response):
            final.add_post_render_callback(self._spend_bytes)
            final.add_post_render_callback(self._release)
        return final

    def _spend_bytes(self, response: Response) -> None:
        """Count the bytes of request and answer against the caller's quota."""
        principal = self.request.auth
        size = len(response.content) + getattr(self.request, "body_size", 0)
        if isinstance(principal, Principal) and principal.token_id and runtimes.is_running():
            runtime = runtimes.current()
            if runtime.loop is not None:
                spend = runtime.get(Quotas).spend
                runtime.loop.call_soon_threadsafe(spend, principal, None, size)

    def _release(self, response: Response) -> None:
        """Free what the response shows by reference counts.

        Django REST framework's request, response and view refer to each other. All that a list read would wait for
        the next search for cyclic garbage: a million objects after some seconds.
        """
        response.data = None
        vars(response)["renderer_context"].clear()
        self.request.parser_context.clear()
        vars(self).clear()

    @property
    def principal(self) -> Principal:
        """The caller."""
        found = self.request.auth
        assert isinstance(found, Principal)
        return found

    def require(self, name: str = CLUSTER_NAME) -> None:
        """Raise the authorization error unless the caller has what this operation takes, for what has this name."""
        method = "get" if self.request.method == "HEAD" else str(self.request.method).lower()
        self.principal.require(getattr(self, method).takes, name)

    def visible(self, resource: Resource) -> Visible:
        """The groups or topics that the caller may describe, in the form that lists take."""
        return self.principal.visible(resource)

    def service(self, work: Callable[[Runtime], Awaitable[T]]) -> T:
        """Run a coroutine of the async services and return its result."""
        return bridge.call(work)

    def filters(self, serializer: type[PageQuery]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The validated parameters of a list: those of the page, and the others."""
        given = dict(self.query(serializer))
        return {name: given.pop(name) for name in ("cursor", "limit") if name in given}, given

    def by_id(self, rows: QuerySet[Any], query: Mapping[str, Any]) -> Page[Any]:
        """A page of the rows of a table, by id."""
        after = decode_cursor(query["cursor"], int)[0] if "cursor" in query else 0
        found, more = cut(list(rows.filter(id__gt=after).order_by("id")[: query["limit"] + 1]), query["limit"])
        return Page(found, encode_cursor(found[-1].pk) if more else None)

    def listed(self, kind: type, items: str, page: Page[Any], **named: Any) -> Response:
        """A page of a list: its items in the field `items`, beside the fields in `named`."""
        return Response(shown(kind, {**named, items: page.items, "next_cursor": page.next_cursor}))

    def given(self, serializer: type[Serializer[Any]]) -> Mapping[str, Any]:
        """The validated fields of the body. Raises INVALID_REQUEST naming the first invalid one."""
        caller, data = current.caller_of_request(), self.request.data
        if caller is not None:
            caller.subject = subject_of(data)
        return validated(serializer(data=data))

    def query(self, serializer: type[Serializer[Any]] | None = None) -> Mapping[str, Any]:
        """The validated parameters of the query string; without a serializer none are allowed."""
        try:
            return validated((serializer or NoParameters)(data=_parameters(self.request.GET, serializer)))
        except ValidationError as error:
            path, message = first_complaint(error.detail)
            name = path.partition("[")[0]  # the message says which of its values it was
            raise problem.invalid(f"{name}: {message}", name) from None


class NoParameters(Serializer[Any]):
    """An endpoint without query parameters."""


def validated(serializer: BaseSerializer[Any]) -> Mapping[str, Any]:
    """What the serializer accepted. Raises ProtocolError INVALID_REQUEST naming the field at fault."""
    try:
        serializer.is_valid(raise_exception=True)
        found: Mapping[str, Any] = serializer.validated_data
        return found
    finally:
        vars(serializer).pop("fields", None)  # which refer to it


def _parameters(given: QueryDict, serializer: type[Serializer[Any]] | None) -> dict[str, Any]:
    fields = serializer().get_fields() if serializer is not None else {}
    found: dict[str, Any] = {}
    for name, values in given.lists():
        if name not in fields:
            raise problem.no_such_parameter(name, fields)
        if isinstance(fields[name], ListField):
            found[name] = values
        elif len(values) > 1:
            raise problem.invalid(f"{name}: given {len(values)} times; the parameter takes one value", name)
        else:
            found[name] = values[0]
    return found


def path_name(request: Request, index: int, taken: str, decode: Callable[[bytes], str]) -> str:
    """The name in the path segment at `index` (0 is `v1`), read from the raw path.

    Django routes on the decoded path, where an encoded slash inside a name looks like a separator. `taken` is
    what the route matched as the name. Raises what `decode` raises for a bad name, and 404 for a longer path.
    """
    scope = getattr(request._request, "scope", None) or {"path": request.path}
    name = decode(paths.raw_path(scope).split(b"/")[index + 1])
    if name != taken:
        raise problem.RequestRefused(404, NOTHING_HERE)
    return name


Q = queries("kcoord")


@contextmanager
def written_in_time() -> Iterator[None]:
    """Run the block in a transaction of Django's connection, which commits only if the request is not too old.

    It is bounded as those of the pools are: Postgres ends it if this process is frozen before the commit.
    Raises ProtocolError COORDINATOR_NOT_AVAILABLE; nothing was committed then.
    """
    receipt = current.receipt()
    if receipt is None or not runtimes.is_running():
        with transaction.atomic():
            yield
        return
    runtime = runtimes.current()
    with transaction.atomic(), connection.cursor() as cursor:
        limit_ms = runtime.config.int("database.transaction.timeout.ms")
        cursor.execute(Q.limit_idle_transaction, {"timeout": f"{limit_ms}ms"})
        yield
        cursor.execute(Q.read_clock, {"override": None})
        (database_ms,) = cursor.fetchone()
        refusal = runtime.db.request_age.refusal(receipt, database_ms)
        if refusal is not None:
            raise refusal


class Anything:
    """Any text, including empty and with slashes: the view reads the raw path and reports what is wrong."""

    regex = r"[\s\S]*"

    def to_python(self, value: str) -> str:
        """The text."""
        return value

    def to_url(self, value: str) -> str:
        """The text."""
        return value


register_converter(Anything, "anything")
