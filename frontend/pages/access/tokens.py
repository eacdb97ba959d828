"""Tokens: the list, the form with rules for usual purposes, and the page of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse

from frontend.pages.access.words import allows, is_administrator, written
from frontend.ui import commands as as_command
from frontend.ui.commands import service_url
from frontend.ui.form import Refusal, done
from frontend.ui.page import Absent, address, cursor, cursor_address, form_page, page, show, text
from frontend.ui.reads import now_ms
from frontend.ui.table import MOST_ROWS, csv_of
from frontend.ui.viewer import Action, require_tokens
from frontend.ui.wording import iso
from kcoord.access import read_only
from kcoord.access.roles import ADMINISTRATOR, OPERATOR, VIEWER
from kcoord.access.tokens import NAME_MAX, NewToken, Rule, create_token, delete_token, parse_rule, rotate_token
from kcoord.database.paging import MAX_LIMIT
from kcoord.models import ApiToken


@dataclass(frozen=True, slots=True)
class Preset:
    """A purpose: a service, or a role (`kcoord.access.roles`)."""

    key: str
    label: str
    help: str


ROLES = {"viewer-role": VIEWER, "operator-role": OPERATOR}
GRANTED: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "consumer": (("read",), ("read",)),
    "lag": (("describe",), ("describe",)),
    "operator": (("read", "alter-offsets", "delete", "kick"), ("read",)),
}
"""Presets for names of groups and topics: the operations on the groups, and on the topics."""


def _granted(preset: str, groups: Iterable[tuple[str, str]], topics: Iterable[tuple[str, str]]) -> list[Rule]:
    """The rules of one of them. Names are pairs of pattern and name."""
    on_groups, on_topics = GRANTED[preset]
    return [
        *(Rule(operation, "group", *name) for name in groups for operation in on_groups),
        *(Rule(operation, "topic", *name) for name in topics for operation in on_topics),
    ]


def _help(purpose: str, preset: str) -> str:
    """What a preset is for, and what its rules allow."""
    rules = _granted(preset, [("literal", "named")], [("literal", "named")])
    phrases = [_of_named(phrase) for phrase in allows(rules)]
    return f"{purpose} It may {'; '.join(phrases)}."


def _of_named(phrase: str) -> str:
    return phrase.replace("group named", "the groups").replace("topic named", "the topics")


PRESETS = (
    Preset("consumer", "Consumer", _help("A service that consumes.", "consumer")),
    Preset("lag", "Lag reader", _help("Monitoring, which changes nothing.", "lag")),
    Preset("operator", "Operator of groups", _help("People and programs that run groups.", "operator")),
    Preset("viewer-role", VIEWER.label, f"{VIEWER.help} By the beginning of names."),
    Preset("operator-role", OPERATOR.label, f"{OPERATOR.help} By the beginning of names."),
    Preset("administrator", ADMINISTRATOR.label, ADMINISTRATOR.help),
    Preset("custom", "Own rules", "One per line: operation:resource:name; a * at the end makes the name a prefix."),
)


def rules_of(given: Mapping[str, str]) -> list[Rule]:
    """The rules that a form asks for. Raises ValueError naming the field and the remedy."""
    preset = given.get("preset", "")
    if preset == "administrator":
        return list(ADMINISTRATOR.rules())
    if preset in ROLES:
        return list(ROLES[preset].rules(_prefix(given.get("prefix", ""))))
    if preset == "custom":
        rules = [parse_rule(line.strip()) for line in given.get("rules", "").splitlines() if line.strip()]
        if not rules:
            raise ValueError("Own rules: write at least one, such as read:group:billing-*.")
        return rules
    if preset not in GRANTED:
        raise ValueError("Choose what the rules are for.")
    return _granted(preset, *(_names(given.get(label.lower(), ""), label) for label in ("Groups", "Topics")))


def _prefix(written: str) -> str:
    """The beginning of names that a role is about; `*` stands for all names."""
    prefix = written.strip()
    if not prefix:
        raise ValueError("Prefix: write how the names begin, such as billing-; * means everything.")
    if len(prefix) > NAME_MAX:
        raise ValueError(f"Prefix: at most {NAME_MAX} characters.")
    return prefix.removesuffix("*")


def _names(written: str, label: str) -> list[tuple[str, str]]:
    """Pattern and name of each of several names, separated by spaces, commas or lines."""
    names = []
    for name in written.replace(",", " ").split():
        pattern = "prefix" if name.endswith("*") else "literal"
        if len(name.removesuffix("*")) > NAME_MAX:
            raise ValueError(f"{label}: a name has at most {NAME_MAX} characters.")
        names.append((pattern, name.removesuffix("*")))
    if not names:
        raise ValueError(f"{label}: name at least one; * means all.")
    return list(dict.fromkeys(names))


SHOWN = 50
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
LIVES = ((0, "Never"), (30 * DAY_MS, "After 30 days"), (90 * DAY_MS, "After 90 days"), (365 * DAY_MS, "After a year"))
OVERLAPS = (
    (0, "No time: at once"),
    (HOUR_MS, "1 hour"),
    (DAY_MS, "1 day"),
    (7 * DAY_MS, "7 days"),
    (30 * DAY_MS, "30 days"),
)
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class TokenLine:
    """A token as pages show it. `expired`: it is refused; `overlapping`: the secret before still works."""

    token: ApiToken
    rules: Sequence[Rule]
    allows: Sequence[str]
    administrator: bool
    expired: bool
    overlapping: bool

    @property
    def url(self) -> str:
        """The page of the token."""
        return reverse("frontend:token", args=[self.token.pk])


def rules_in(token: ApiToken) -> list[Rule]:
    """The rules of a token."""
    return [Rule(rule.operation, rule.resource, rule.pattern, rule.name, rule.effect) for rule in token.rules.all()]


def tokens_named(q: str) -> QuerySet[ApiToken]:
    """The tokens whose names contain `q`, by name, with their rules."""
    found = ApiToken.objects.order_by("name").prefetch_related("rules")
    return found.filter(name__icontains=q) if q else found


def _line(token: ApiToken, now: int) -> TokenLine:
    rules = rules_in(token)
    return TokenLine(
        token,
        rules,
        allows(rules),
        is_administrator(rules),
        expired=token.expires_at is not None and token.expires_at <= now,
        overlapping=token.previous_until is not None and token.previous_until > now,
    )


@page
def token_list(request: HttpRequest) -> HttpResponse:
    """A page of tokens by name, whose names contain a text."""
    require_tokens(request)
    q, now = text(request, "q"), now_ms()
    after = cursor(request, "after", str)
    found = tokens_named(q)
    if after:
        found = found.filter(name__gt=after[0])
    tokens = list(found[: SHOWN + 1])
    context = {
        "now": now,
        "q": q,
        "lines": [_line(token, now) for token in tokens[:SHOWN]],
        "first_url": address(request, after=None) if after else None,
        "next_url": cursor_address(request, "after", tokens[SHOWN - 1].name) if len(tokens) > SHOWN else None,
        "create": Action("New token", reverse("frontend:create-token"), read_only.reason()),
    }
    return show(request, "pages/access/tokens", context, section="tokens", title="Tokens")


@form_page("token.create")
def new_token(request: HttpRequest) -> HttpResponse:
    """Create a token; its secret is shown once, in the response."""
    require_tokens(request, to_change=True)
    given = request.POST if request.method == "POST" else request.GET
    refusal, now, rules = Refusal(), now_ms(), list[Rule]()
    expires = _choice(given.get("expires", ""), LIVES)
    try:
        rules = rules_of(given.dict()) if given.get("preset") else []
    except ValueError as error:
        refusal = Refusal(str(error), 400)
    preview = request.POST.get("act") == "preview"
    if request.method == "POST" and not refusal.text and not preview:
        made, refusal = _create(given.get("name", "").strip(), rules, now + expires if expires else None)
        if made is not None:
            return _secret(request, made, "Token created", "")
    if request.method == "GET" or preview:
        refusal = Refusal()
    expires_at = iso(now + expires) if expires else None
    body = {"name": given.get("name", ""), "rules": [asdict(rule) for rule in rules], "expires_at": expires_at}
    command = as_command.request(service_url(request), "Create the token", "POST", "tokens", body)
    context = {
        "now": now,
        "refusal": refusal,
        "given": given,
        "presets": PRESETS,
        # Most tokens are for a service that consumes.
        "chosen": given.get("preset") or PRESETS[0].key,
        "lives": LIVES,
        "allows": allows(rules) if rules else [],
        "administrator": is_administrator(rules) if rules else False,
        "commands": [command] if rules else [],
    }
    return show(request, "pages/access/new_token", context, section="tokens", status=refusal.status)


def _create(name: str, rules: Sequence[Rule], expires_at: int | None) -> tuple[NewToken | None, Refusal]:
    if not 1 <= len(name) <= LONGEST_NAME:
        return None, Refusal(f"Name: 1 to {LONGEST_NAME} characters: who or what uses the token.", 400)
    if not rules:
        return None, Refusal("Choose what the rules are for.", 400)
    try:
        return create_token(name, rules, expires_at), Refusal()
    except ValueError as error:
        return None, Refusal(f"Name: {error}.", 409)


@form_page("token.change", rotate="token.rotate", revoke="token.delete")
def token_page(request: HttpRequest, token_id: int) -> HttpResponse:
    """What a token allows; rotate or revoke it."""
    require_tokens(request)
    refusal, act = Refusal(), request.POST.get("act", "")
    token = ApiToken.objects.prefetch_related("rules").filter(pk=token_id).first() if token_id < 2**63 else None
    if token is None:
        raise Absent("No such token", "There is no such token; it may have been revoked.", "tokens")
    if request.method == "POST" and act == "rotate":
        overlap = _choice(request.POST.get("overlap", ""), OVERLAPS)
        made = rotate_token(token_id, overlap)
        if made is not None:
            return _secret(request, made, "Token rotated", _until(overlap))
    elif request.method == "POST" and act == "revoke":
        if request.POST.get("confirm", "").strip() == token.name:
            delete_token(token.pk)
            return done(request, f"Revoked {token.name}. Servers refuse it within seconds.", reverse("frontend:tokens"))
        refusal = Refusal("That is not the name of this token: nothing was revoked.", 400)
    elif request.method == "POST":
        refusal = Refusal("act: must be rotate or revoke.", 400)
    now, url = now_ms(), service_url(request)
    context: dict[str, Any] = {
        "now": now,
        "line": _line(token, now),
        "token": token,
        "rule_lines": [written(rule) for rule in _line(token, now).rules],
        "refusal": refusal,
        "lacking": read_only.reason(),
        "overlaps": OVERLAPS,
        "commands": [
            as_command.request(url, "Rotate the token", "POST", f"tokens/{token.pk}/rotate", {"overlap_ms": DAY_MS}),
            as_command.request(url, "Revoke the token", "DELETE", f"tokens/{token.pk}"),
        ],
    }
    return show(request, "pages/access/token", context, section="tokens", status=refusal.status)


def _until(overlap: int) -> str:
    if not overlap:
        return "The secret before is refused within seconds."
    lasts = next(label for ms, label in OVERLAPS if ms == overlap)
    return f"The secret before stays valid for {lasts}."


def _secret(request: HttpRequest, made: NewToken, title: str, note: str) -> HttpResponse:
    """The only page that ever shows a secret: it is the response itself, for a redirect would have to store it."""
    token = ApiToken.objects.prefetch_related("rules").get(name=made.name)
    context = {"now": now_ms(), "title": title, "note": note, "secret": made.secret, "token": token}
    return show(request, "pages/access/token_secret", {**context, "line": _line(token, now_ms())}, section="tokens")


def _choice(written: str, offered: Sequence[tuple[int, str]]) -> int:
    return next((ms for ms, _ in offered if str(ms) == written), 0)


@page
def tokens_csv(request: HttpRequest) -> HttpResponseBase:
    """The tokens that match the search, with their rules."""
    require_tokens(request)
    found = tokens_named(text(request, "q"))
    columns = """
        id=pk name prefix rules @created_at @last_used_at @expires_at @previous_secret_until=previous_until
    """
    rows = found[:MOST_ROWS].iterator(chunk_size=MAX_LIMIT)
    return csv_of("tokens", columns, rows, rules=lambda token: " ".join(map(written, rules_in(token))))
