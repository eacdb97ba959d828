"""The settings of sign-in: with a password, and with a company's identity (OpenID Connect). Part of `kcoord.config`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from urllib.parse import urlsplit

from kcoord.setting import Setting

ISSUER = "oidc.issuer"
CLIENT_ID = "oidc.client.id"
CLIENT_SECRET = "oidc.client.secret"  # noqa: S105 - the name of a setting
CLIENT_SECRET_FILE = "oidc.client.secret.file"  # noqa: S105 - the name of a setting
SCOPES = "oidc.scopes"
ALLOWED_GROUPS = "oidc.allowed.groups"
GROUP_MAP = "oidc.group.map"
SIGN_OUT = "oidc.sign.out"
EVERYBODY = "*"
PASSWORDS = "password.sign.in"

IDENTITY: tuple[Setting, ...] = (
    Setting(
        PASSWORDS,
        "all",
        "accounts",
        "Who may sign in with a password: all accounts that have one, or, for emergencies, only superusers that are "
        "not linked to an identity provider.",
        choices=("all", "emergency"),
    ),
    Setting(
        ISSUER,
        "",
        "url",
        "Issuer of an OpenID Connect provider, as its discovery document writes it; empty: only passwords.",
    ),
    Setting(CLIENT_ID, "", "text", "The id under which this service is registered at the provider."),
    Setting(CLIENT_SECRET, "", "text", "The secret of that client; empty: a public client, with PKCE.", secret=True),
    Setting(CLIENT_SECRET_FILE, "", "path", "File to read that secret from at each sign-in, instead."),
    Setting("oidc.label", "your company account", "text", "What the button says after 'Sign in with'."),
    Setting(SCOPES, "openid profile email", "scopes", "Scopes to ask the provider for, separated by spaces."),
    Setting(
        "oidc.username.claim",
        "preferred_username",
        "claim",
        "Claim with the user name of a new account; later sign-ins find the account by issuer and sub.",
    ),
    Setting("oidc.groups.claim", "groups", "claim", "Claim with the names of the provider's groups of a person."),
    Setting(
        ALLOWED_GROUPS,
        "",
        "groups",
        "Groups of the provider whose members may sign in, separated by semicolons; *: everybody it knows.",
    ),
    Setting(
        GROUP_MAP,
        "",
        "pairs",
        "Which group of the provider gives which group here, as provider=here, separated by semicolons. The groups of "
        "an account follow it at each sign-in; empty: they are left alone.",
    ),
    Setting("oidc.staff.group", "", "group", "Group of the provider whose members may open the admin; empty: none."),
    Setting("oidc.superuser.group", "", "group", "Group of the provider whose members are superusers; empty: none."),
    Setting("oidc.create.accounts", True, "switch", "Create an account at the first sign-in of a person."),
    Setting(
        "oidc.session.max.age.ms",
        28_800_000,
        "ms",
        "How long after it a sign-in at the provider ends, whatever the person does.",
        60_000,
        2_592_000_000,
    ),
    Setting(
        SIGN_OUT,
        "ask",
        "way",
        "After a sign-out here: ask whether to sign out at the provider too, always go there, or never; only with a "
        "provider that names an end_session_endpoint.",
        choices=("ask", "always", "never"),
    ),
)


def semicolons(text: str) -> list[str]:
    """The names in a text that separates them by semicolons; names of groups may contain commas."""
    return [name.strip() for name in text.split(";") if name.strip()]


def group_pairs(text: str) -> list[tuple[str, str]]:
    """(provider's group, group here) of `oidc.group.map`, split at the last equals sign. Raises ValueError."""
    pairs = []
    for pair in semicolons(text):
        theirs, separator, ours = (part.strip() for part in pair.rpartition("="))
        if not (separator and theirs and ours) or len(ours) > 150:
            raise ValueError(f"{pair!r} is not provider-group=group, with at most 150 characters after the sign")
        pairs.append((theirs, ours))
    return pairs


def is_safe_url(url: str) -> bool:
    """https, or http to this machine: everything else could be read and changed on the way."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or port == 0 or parts.username is not None or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def problems(value: Callable[[str], str]) -> list[str]:
    """What is wrong with the settings of the provider, one sentence each; `value` is the value of a text setting."""
    if not value(ISSUER):
        needed = [name for name in (CLIENT_ID, CLIENT_SECRET, CLIENT_SECRET_FILE, ALLOWED_GROUPS) if value(name)]
        if value(PASSWORDS) == "emergency":
            needed.append(f"{PASSWORDS}=emergency")
        return [f"{ISSUER} is needed for {needed[0]}"] if needed else []
    found = []
    if not is_safe_url(value(ISSUER)):
        found.append(f"{ISSUER} must be an https:// address, or an http:// one of this machine")
    if not value(CLIENT_ID):
        found.append(f"{CLIENT_ID} is needed for {ISSUER}")
    if value(CLIENT_SECRET) and value(CLIENT_SECRET_FILE):
        found.append(f"{CLIENT_SECRET} and {CLIENT_SECRET_FILE} are both set: unset one")
    if "openid" not in value(SCOPES).split():
        found.append(f"{SCOPES} must include openid")
    if not semicolons(value(ALLOWED_GROUPS)):
        found.append(
            f"{ALLOWED_GROUPS} is needed for {ISSUER}: name the groups whose members may sign in, or * for everybody "
            "whom the provider knows"
        )
    try:
        group_pairs(value(GROUP_MAP))
    except ValueError as error:
        found.append(f"{GROUP_MAP}: {error}")
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
