"""Sign-out: here, and then, if the person wants that or the settings say so, at the identity provider.

The form of the pages is posted to this service, and `form-action 'self'` of the content policy also forbids that the
answer redirects it to another origin. So the answer leads to a page of ours, and from there a link or a refresh, which
are no forms, lead to the provider.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from frontend.identity import sign_out
from kcoord.identity_settings import SIGN_OUT


class SignOut(LogoutView):
    """POST only: a link must not be able to sign users out."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """End the session, whatever the provider does; then its people see the page that leads there."""
        leaving = sign_out.possible(request.session, request.build_absolute_uri(reverse("frontend:signed-out")))
        response: HttpResponse = super().post(request, *args, **kwargs)
        if leaving is None:
            return response
        sign_out.keep(request.session, leaving)
        return redirect("frontend:signed-out")


@require_GET
@never_cache
def signed_out(request: HttpRequest) -> HttpResponse:
    """The session here has ended. The provider sends the browser here, too, once its own has."""
    leaving = sign_out.kept(request.session)
    if request.user.is_authenticated or leaving is None:
        return redirect("frontend:home" if request.user.is_authenticated else "frontend:login")
    done = sign_out.is_answer(leaving, request.GET.get("state", ""))
    if done:
        request.session.flush()
    at_once = not done and not leaving.sent and settings.KCOORD.str(SIGN_OUT) == "always"
    shown = {"provider": settings.KCOORD.str("oidc.label"), "done": done, "at_once": at_once}
    return render(request, "frontend/signed_out.html", shown)


@require_GET
@never_cache
def leave(request: HttpRequest) -> HttpResponse:
    """Send a browser that has signed out here to the provider."""
    leaving = sign_out.kept(request.session)
    if leaving is None:
        return redirect("frontend:login")
    leaving.sent = True
    sign_out.keep(request.session, leaving)
    return HttpResponseRedirect(leaving.address)
