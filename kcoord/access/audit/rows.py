"""Rows that Django itself writes, in the audit: accounts, their groups, schedules, and whatever else the admin edits.

Signals of the models record each change, also those made by a command or in a shell. Tables that a service writes are
not watched, nor those of tokens and rules (`kcoord.access`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from kcoord.access.audit.recording import Act, record_here
from kcoord.access.audit.requests import READING
from kcoord.requests import current

NAMED: Mapping[str, str] = {"auth.user": "account", "auth.group": "role"}
"""Models that have acts of their own; all others are rows."""

WATCHED = ("auth", "django_celery_beat")
"""Applications whose models are watched."""

NOT_WATCHED = frozenset({"auth.permission", "django_celery_beat.periodictasks"})
"""What Django and Celery write by themselves."""

OWN_FIELDS = frozenset({"last_login", "date_joined", "last_run_at", "total_run_count", "date_changed"})
"""Fields that say how a row is used; and `date_joined`, whose microseconds are lost whenever the admin saves a form."""

_BEFORE = "_kcoord_before"
_CHANGES = frozenset({"post_add", "post_remove", "pre_clear"})


def connect() -> None:
    """Watch the models. For `AppConfig.ready`."""
    for signal, receiver in ((pre_save, _note), (post_save, _saved), (post_delete, _deleted), (m2m_changed, _linked)):
        signal.connect(receiver, dispatch_uid=f"kcoord.access.audit.{receiver.__name__}")


def audited_view(admin_view: Callable[..., Any]) -> Callable[..., Any]:
    """The admin's `admin_view`, such that a change is one transaction with its records, and the account is known."""

    @functools.wraps(admin_view)
    def wrapped(view: Callable[..., HttpResponseBase], cacheable: bool = False) -> Callable[..., HttpResponseBase]:
        @functools.wraps(view)
        def audited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.user.is_authenticated:
                current.identify(request.user.get_username(), account_id=request.user.pk)
            if request.method in READING:
                return view(request, *args, **kwargs)
            with transaction.atomic():
                return view(request, *args, **kwargs)

        found: Callable[..., HttpResponseBase] = admin_view(audited, cacheable)
        return found

    return wrapped


def _label(model: type[Model]) -> str:
    return model._meta.label_lower


def _is_watched(model: type[Model]) -> bool:
    options = model._meta
    if options.app_label not in WATCHED or _label(model) in NOT_WATCHED or options.auto_created:
        return False
    return apps.all_models[options.app_label].get(str(options.model_name)) is model  # not one of a migration


def _values(row: Model) -> dict[str, Any]:
    fields = (field for field in row._meta.concrete_fields if field.name not in OWN_FIELDS)
    return {field.name: field.value_from_object(row) for field in fields}


def _name(row: Model) -> str:
    return str(row) if _label(type(row)) in NAMED else f"{_label(type(row))} {row}"


def _record(row: Model, verb: str, before: Any = None, after: Any = None) -> None:
    kind = NAMED.get(_label(type(row)), "row")
    record_here(Act(f"{kind}.{verb}", kind, _name(row), before=before, after=after))


def _note(sender: type[Model], instance: Model, raw: bool = False, **kwargs: Any) -> None:
    """What the row was, before it is saved."""
    if raw or not _is_watched(sender):
        return
    known = sender._default_manager.filter(pk=instance.pk).first() if instance.pk is not None else None
    setattr(instance, _BEFORE, None if known is None else _values(known))


def _saved(sender: type[Model], instance: Model, created: bool, raw: bool = False, **kwargs: Any) -> None:
    if raw or not _is_watched(sender):
        return
    before, after = getattr(instance, _BEFORE, None), _values(instance)
    if before is None or created:
        _record(instance, "create", after=after)
        return
    changed = sorted(name for name in after if before.get(name) != after[name])
    if changed == ["password"]:
        # A password that is only stored with another hash was not set by anybody.
        if getattr(instance, "_password", None) is not None:
            _record(instance, "password")
    elif changed:
        was, now = ({name: values.get(name) for name in changed} for values in (before, after))
        _record(instance, "change", was, now)


def _deleted(sender: type[Model], instance: Model, **kwargs: Any) -> None:
    if _is_watched(sender):
        _record(instance, "delete", before=_values(instance))


def _linked(sender: type[Model], instance: Model, action: str, reverse: bool, pk_set: Any, **kwargs: Any) -> None:
    """An account got or lost groups or permissions, or a group permissions."""
    model = kwargs["model"]
    if action not in _CHANGES or not _is_watched(type(instance)):
        return
    if action == "pre_clear":
        own = () if reverse else type(instance)._meta.many_to_many
        of = next((field.name for field in own if field.remote_field.through is sender), None)
        pk_set = set() if of is None else set(getattr(instance, of).values_list("pk", flat=True))
    if not pk_set:
        return
    names = sorted(str(row) for row in model._default_manager.filter(pk__in=pk_set))
    linked = {model._meta.model_name: names}
    adds = action == "post_add"
    _record(instance, "change", None if adds else linked, linked if adds else None)


def watched() -> list[type[Model]]:
    """The models whose changes are recorded."""
    return [model for model in apps.get_models() if _is_watched(model)]
