"""Django's middleware, with its hooks on the event loop.

Django calls both hooks of each middleware in a thread of the request: fourteen changes of thread for a request that
asks the database for nothing in any of them. Here a hook is called directly, and in the thread only where it may wait
for the database or compute for long (`needs_thread`). Those of which `check --deploy` wants to see Django's own names
in the settings (security, CSRF, frames) stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.utils.deprecation import MiddlewareMixin

if TYPE_CHECKING:
    Base = MiddlewareMixin
else:
    Base = object


class OnLoop(Base):
    """Put this before a middleware of Django's."""

    keeps = ""
    """The attribute in which the middleware leaves something that refers to the request. It is dropped with the answer:
    each request would otherwise wait for the next search for cyclic garbage."""

    def needs_thread(self, request: HttpRequest, response: HttpResponseBase) -> bool:
        """Whether `process_response` may wait for the database or compute for long."""
        return False

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve one request."""
        begin: Any = getattr(self, "process_request", None)
        response: HttpResponseBase | None = begin(request) if begin is not None else None
        if response is None:
            response = await self.get_response(request)  # type: ignore[misc]
        finish: Any = getattr(self, "process_response", None)
        if finish is not None and self.needs_thread(request, response):
            response = await sync_to_async(finish, thread_sensitive=True)(request, response)
        elif finish is not None:
            response = finish(request, response)
        vars(request).pop(self.keeps, None)
        return response


class Sessions(OnLoop, SessionMiddleware):
    """`request.session`, which is read when it is asked for."""

    def needs_thread(self, request: HttpRequest, response: HttpResponseBase) -> bool:
        """A session that was changed is stored."""
        session = getattr(request, "session", None)
        return session is not None and session.modified


class Common(OnLoop, CommonMiddleware):
    """Redirects to addresses with a slash, and the length of answers."""


class Authentication(OnLoop, AuthenticationMiddleware):
    """`request.user`, which is read when it is asked for."""

    keeps = "auser"


class Messages(OnLoop, MessageMiddleware):
    """Messages for the next page, in a cookie or, if they are long, in the session."""

    keeps = "_messages"

    def needs_thread(self, request: HttpRequest, response: HttpResponseBase) -> bool:
        """Messages that were added or read may change the session."""
        storage: Any = getattr(request, "_messages", None)
        return storage is not None and (storage.used or storage.added_new)
