"""Why a sign-in failed: what the person sees, what an administrator has to do, and what only the log says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Explanation:
    """Texts of a page that strangers see, too: they name settings, never their values or what the provider said."""

    status: int
    said: str
    remedy: str


class Reason(Enum):
    """One kind of failure."""

    NOT_STARTED_HERE = Explanation(
        400,
        "This sign-in was not started in this browser, was used already, or took more than ten minutes.",
        "Start again. If it happens each time, the browser refuses cookies, or the host name differs from the one that "
        "the provider sends people back to.",
    )
    INSECURE = Explanation(
        400,
        "This page was not opened over https, so the provider's answer could be read on its way.",
        "Use the https address. If this was one, the proxy in front must send X-Forwarded-Proto, and "
        "KCOORD_TRUSTED_PROXIES must name it.",
    )
    DENIED = Explanation(
        403,
        "The identity provider did not sign you in.",
        "Look at this client in the provider: it says who may use it, and which redirect address and scopes it has.",
    )
    UNREACHABLE = Explanation(
        503,
        "The identity provider did not answer.",
        "Check that this server reaches the address in KCOORD_OIDC_ISSUER. Superusers with a password can sign in "
        "meanwhile.",
    )
    UNEXPECTED = Explanation(
        502,
        "The answer of the identity provider was not accepted.",
        "Compare KCOORD_OIDC_ISSUER, KCOORD_OIDC_CLIENT_ID and the client secret with the provider; the clocks of both "
        "must agree.",
    )
    NOT_ALLOWED = Explanation(
        403,
        "You are known to the identity provider, but may not use this service.",
        "Add the person to a group of KCOORD_OIDC_ALLOWED_GROUPS, and check that the claim of KCOORD_OIDC_GROUPS_CLAIM "
        "is sent.",
    )
    NO_ACCOUNT = Explanation(
        403,
        "You have no account here, and accounts are not created at sign-in.",
        "Create an account without a password under the user name that the provider sends, or set "
        "KCOORD_OIDC_CREATE_ACCOUNTS.",
    )
    NAME_TAKEN = Explanation(
        403,
        "An account with your user name exists here and belongs to somebody else, or has a password.",
        "Rename that account, or remove its password if it is meant for this person; superusers are never linked.",
    )
    NO_NAME = Explanation(
        502,
        "The identity provider did not send a user name that can be used here.",
        "Check the claim of KCOORD_OIDC_USERNAME_CLAIM: at most 150 letters, digits and @ . + - _.",
    )
    INACTIVE = Explanation(
        403, "Your account here is deactivated.", "Activate the account in the admin if the person is to be admitted."
    )


class SignInRefused(Exception):
    """A sign-in failed. `detail` is for the log; `username`: as far as it is known."""

    def __init__(self, reason: Reason, detail: str, username: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.username = username
