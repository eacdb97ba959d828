"""Give rules to a person, a group of people or a token, with a preview of what they then may do and see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from frontend.pages.access.tokens import PRESETS, rules_of
from frontend.pages.access.words import KIND_WORDS, allows, effective, is_administrator
from frontend.ui import commands as as_command
from frontend.ui.commands import service_url
from frontend.ui.form import Refusal, done
from frontend.ui.page import form_page, show
from frontend.ui.reads import Q, now_ms
from frontend.ui.viewer import require_tokens
from frontend.ui.wording import joined
from kcoord.access import store
from kcoord.access.rights import Principal, Resource
from kcoord.access.store import HolderName, UnknownHolder
from kcoord.access.tokens import Rule
from kcoord.database.paging import Visible

MOST_COUNTED = 1_000
NAMES_SHOWN = 5


@form_page("rule.add")
def grant(request: HttpRequest) -> HttpResponse:
    """Add rules to a holder."""
    require_tokens(request, to_change=True)
    given = request.POST if request.method == "POST" else request.GET
    preview, refusal, rules = request.method == "GET" or given.get("act") == "preview", Refusal(), list[Rule]()
    kind = given.get("kind", "User")
    holder = HolderName(kind if kind in KIND_WORDS else "User", given.get("holder", "").strip())
    try:
        rules = rules_of(given.dict()) if given.get("preset") else []
        if not preview:
            return _granted(request, holder, rules)
    except ValueError as error:
        refusal = Refusal() if preview else Refusal(str(error), 400)
    body = {"principal": str(holder), "rules": [asdict(rule) for rule in rules]}
    command = as_command.request(service_url(request), "Add the rules", "POST", "acls", body)
    context = {
        "now": now_ms(),
        "refusal": refusal,
        "given": given,
        "holder": holder,
        "kinds": KIND_WORDS.items(),
        "presets": PRESETS,
        "chosen": given.get("preset") or "viewer-role",
        "outcome": _outcome(holder, rules) if rules and holder.name else None,
        "commands": [command] if rules and holder.name else [],
    }
    return show(request, "pages/access/grant", context, section="access", status=refusal.status)


def _granted(request: HttpRequest, holder: HolderName, rules: Sequence[Rule]) -> HttpResponse:
    """Add the rules. Raises ValueError naming the field and the remedy."""
    if not holder.name:
        raise ValueError("Name: write who gets the rules.")
    if not rules:
        raise ValueError("Choose what the rules are for.")
    with transaction.atomic():
        if holder.kind == "Group":
            _add_people(request, holder)
        try:
            added = store.add_rules(holder, rules)
        except UnknownHolder as error:
            raise ValueError(f"Name: {error}; create it first.") from None
    new = f"{len(added)} new rule{'' if len(added) == 1 else 's'}" if added else "these rules already"
    return done(request, f"{holder.name} has {new}.", f"{reverse('frontend:access')}?{urlencode({'q': holder.name})}")


def _add_people(request: HttpRequest, holder: HolderName) -> None:
    """Create the group of people if that is asked for, and add people to it."""
    if request.POST.get("new") == "yes":
        store.create_group(holder.name)
    names = dict.fromkeys(request.POST.get("people", "").replace(",", " ").split())
    people = {person.get_username(): person for person in get_user_model().objects.filter(username__in=names)}
    for name in names:
        if name not in people:
            raise ValueError(f"People: there is no account {name!r}; create it first.")
    if people:
        try:
            group = holder.find()
        except UnknownHolder as error:
            raise ValueError(f"Name: {error}; create it with the box below the name.") from None
        assert isinstance(group, Group)
        group.user_set.add(*people.values())


def _outcome(holder: HolderName, rules: Sequence[Rule]) -> Mapping[str, Any]:
    """What the holder may do and see once it has these rules, with those that it has already."""
    after = list(dict.fromkeys([*_held(holder), *rules]))
    principal = Principal(0, holder.name, effective(after))
    return {
        "phrases": allows(after),
        "administrator": is_administrator(after),
        "groups": _seen(Q.groups_seen, principal.listed_groups),
        "topics": _seen(Q.topics_seen, principal.visible(Resource.TOPIC)),
    }


def _held(holder: HolderName) -> list[Rule]:
    """The rules of a holder, with those of the groups that a person is in; none of one that does not exist."""
    try:
        found: Any = holder.find()
    except UnknownHolder:
        return []
    if holder.kind != "User":
        return store.rules_of(found)
    through = [rule for group in found.groups.all() for rule in store.rules_of(group)]
    return [*store.rules_of(found), *through]


def _seen(statement: str, visible: Visible) -> Mapping[str, Any]:
    """What can be seen of one kind: the number, and the first names. `more`: there are more than were counted."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {**visible.parameters("seen"), "limit": MOST_COUNTED + 1})
        names = [name for (name,) in cursor.fetchall()]
    count = min(len(names), MOST_COUNTED)
    return {"count": count, "more": len(names) > count, "names": joined(names, NAMES_SHOWN) if names else ""}
