"""The Django admin: API tokens, accounts, the timer; and what the admins of groups and offsets share.

The theme has no type hints, hence `type: ignore[misc]` on classes derived from its classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group as AccountGroup
from django.db import connection
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.paginator import InfinitePaginator
from unfold.widgets import UnfoldAdminSplitDateTimeWidget

from kcoord.access import tokens
from kcoord.access.administration import ForAdministrators, ForClusterAdministrators, ForTokenManagers
from kcoord.access.audit.recording import Act, record_here
from kcoord.access.quotas.quotas import Kind
from kcoord.access.quotas.stored import recorded
from kcoord.access.rights import digest
from kcoord.control import admin_theme
from kcoord.control.admin_rights import (
    AccessRuleInline,
    ChangedByAdministrators,
    RoleForm,
    RulesRecorded,
    TokenRuleInline,
)
from kcoord.database.fields import MillisField
from kcoord.database.sql import queries
from kcoord.models import ApiToken, AuditChain, AuditRecord, Counter, Quota, Throttled, TimerHeartbeat
from kcoord.resets.instants import clock

Shown = Callable[[Any, Any], str]

MOST_ROWS = 200
"""Of a table on the page of what its rows belong to."""


def utc(milliseconds: int | None) -> str:
    """An instant as readable UTC, a dash for None."""
    if milliseconds is None:
        return "–"
    return f"{clock(milliseconds).replace(tzinfo=None).isoformat(' ', 'milliseconds')} UTC"


def instant(field: str, label: str) -> Shown:
    """A column of the admin that shows the milliseconds of `field` as an instant, sortable."""

    @admin.display(description=label, ordering=field)
    def shown(_admin: Any, row: Any) -> str:
        return format_html('<span class="whitespace-nowrap">{}</span>', utc(getattr(row, field)))

    return shown


def table(headings: Sequence[str], rows: Sequence[Sequence[object]], total: int) -> SafeString:
    """A plain table of rows, and how many of all rows it leaves out."""
    if not rows:
        return SafeString("none")
    head = format_html_join("", '<th class="pr-6 text-left font-semibold">{}</th>', ((h,) for h in headings))
    body = format_html_join(
        "",
        "<tr>{}</tr>",
        ((format_html_join("", '<td class="pr-6 align-top">{}</td>', ((cell,) for cell in row)),) for row in rows),
    )
    rest = f"{total - len(rows):,} more not shown" if total > len(rows) else ""
    return format_html("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}", head, body, rest)


def table_of(
    model: type[Model],
    by: str,
    columns: str,
    *,
    label: str,
    order: str = "topic partition",
    written: Mapping[str, Callable[[Any], object]] = {},
) -> Shown:
    """A field of a page: the first MOST_ROWS rows of another table that belong to what the page shows.

    The admin cannot list tables with a composite primary key, so they are shown like this. Parameters: `by`, the
    foreign key; `columns`, names with blanks between them, each with its heading after `=` unless that is the name;
    `written`, how columns are written that are neither text, numbers nor instants.
    """
    named = [column.partition("=") for column in columns.split()]
    names = [name for name, _, _ in named]
    headings = [(heading or name).replace("_", " ") for name, _, heading in named]
    instants = {field.name for field in model._meta.fields if isinstance(field, MillisField)}

    def cell(column: str, value: Any) -> object:
        if column in written:
            return written[column](value)
        return "–" if value is None else utc(value) if column in instants else value

    @admin.display(description=label)
    def shown(_admin: Any, row: Any) -> SafeString:
        found = model._default_manager.filter(**{by: row}).order_by(*order.split())
        rows = [tuple(map(cell, names, values)) for values in found.values_list(*names)[:MOST_ROWS]]
        return table(headings, rows, found.count())

    return shown


def live_page(route: str, field: str | None = None) -> Shown:
    """A field of a page: a link to the page of the dashboard at a route, with the value of `field` in its address."""

    @admin.display(description="dashboard")
    def shown(_admin: Any, row: Any) -> SafeString:
        address = reverse(route, args=[getattr(row, field)] if field else [])
        classes = "text-primary-600 underline dark:text-primary-400"
        return format_html('<a class="{}" href="{}">live page</a>', classes, address)

    return shown


def _renamed(names: Any, to: Mapping[str, str]) -> Any:
    """The same names, in whatever they are nested, with others for some."""
    if isinstance(names, str):
        return to.get(names, names)
    if isinstance(names, Mapping):
        return {key: _renamed(value, to) for key, value in names.items()}
    return names and tuple(_renamed(name, to) for name in names)


class ReadOnly(ForAdministrators):
    """Rows written by the service only: the admin shows them to administrators, and offers no actions.

    Fields in milliseconds are shown as instants, by their names or as `labels` says.
    """

    labels: Mapping[str, str] = {}
    opts: Any
    readonly_fields: Any = ()

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        instants = {field.name: f"shown_{field.name}" for field in self.opts.fields if isinstance(field, MillisField)}
        for name, column in instants.items():
            setattr(type(self), column, instant(name, self.labels.get(name, name.replace("_", " "))))
        for attribute in ("list_display", "fields", "fieldsets"):
            setattr(self, attribute, _renamed(getattr(self, attribute, None), instants))
        self.readonly_fields = (*_renamed(self.readonly_fields, instants), *instants.values())
        self.exclude = (*(getattr(self, "exclude", None) or ()), *instants)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows cannot be added."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows cannot be changed."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Rows cannot be deleted."""
        return False


class ReadOnlyAdmin(ReadOnly, ModelAdmin):  # type: ignore[misc]
    """A list that stays fast on millions of rows: it never counts them."""

    paginator = InfinitePaginator
    show_full_result_count = False
    list_per_page = 50
    actions = None


def read_only(
    model: type[Model],
    columns: str,
    more: str = "",
    *,
    order: str,
    search: str = "",
    filters: Sequence[Any] = (),
    related: Sequence[str] = (),
    **options: Any,
) -> None:
    """Register a table whose rows are only looked at.

    Parameters: `columns`, those of the list; with `more`, those of the page of a row, unless `fields` says which: names
    with blanks between them. `options` are attributes of the class, such as columns that are computed.
    """
    names = (options.pop("fields", None) or f"{columns} {more}").split()
    attributes = {
        "list_display": columns.split(),
        "fields": names,
        "readonly_fields": [name for name in names if name in options],
        "list_select_related": list(related) or False,
        "list_filter": list(filters),
        "search_fields": search.split(),
        "ordering": order.split(),
        "__module__": __name__,
        **options,
    }
    admin.site.register(model, type(f"{model.__name__}Admin", (ReadOnlyAdmin,), attributes))


class ReadOnlyInline(ReadOnly, TabularInline):  # type: ignore[misc]
    """Children that are shown but cannot be changed."""

    extra = 0
    can_delete = False
    per_page = 25


class ApiTokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """A token; its expiry is given as a date."""

    expires = forms.SplitDateTimeField(
        required=False,
        widget=UnfoldAdminSplitDateTimeWidget,
        help_text="In UTC. Empty: it never expires.",
    )

    class Meta:
        model = ApiToken
        fields = ("name", "owner")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.expires_at is not None:
            self.initial["expires"] = clock(self.instance.expires_at)

    def save(self, commit: bool = True) -> ApiToken:
        """With the expiry in milliseconds."""
        expires = self.cleaned_data["expires"]
        self.instance.expires_at = None if expires is None else int(expires.timestamp() * 1000)
        token: ApiToken = super().save(commit)
        return token


@admin.register(ApiToken)
class ApiTokenAdmin(ChangedByAdministrators, ForTokenManagers, ModelAdmin):  # type: ignore[misc]
    """Tokens. The secret is generated here, shown once in the response, and stored nowhere."""

    form = ApiTokenForm
    inlines = (TokenRuleInline,)
    list_display = ("name", "secret_begins", "rules", "created", "expires", "last_used", "owner")
    list_select_related = ("owner",)
    search_fields = ("name", "prefix")
    ordering = ("name",)

    created = instant("created_at", "created")
    expires = instant("expires_at", "expires")
    last_used = instant("last_used_at", "last used")

    def get_queryset(self, request: HttpRequest) -> Any:
        """With the rules, which the list shows."""
        return super().get_queryset(request).prefetch_related("rules")

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        """Generated values are shown once they exist."""
        fields = ("name", "owner", "expires")
        return fields if obj is None else (*fields, "secret_begins", "created")

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> tuple[str, ...]:
        """Generated values cannot be changed."""
        return () if obj is None else ("secret_begins", "created")

    @admin.display(description="secret")
    def secret_begins(self, token: ApiToken) -> str:
        """The beginning of the secret, to tell tokens apart."""
        return f"{token.prefix}…"

    @admin.display(description="rules")
    def rules(self, token: ApiToken) -> str:
        """What the token may do, abbreviated."""
        rules = [str(rule) for rule in token.rules.all()]
        return ", ".join(rules[:3]) + (f" and {len(rules) - 3} more" if len(rules) > 3 else "")

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Store the token; if it is new, keep the secret for the response page."""
        if not change:
            secret = tokens.generate_secret()
            obj.digest, obj.prefix, obj.created_at = digest(secret), tokens.prefix(secret), _now_ms()
            request.kcoord_secret = secret  # type: ignore[attr-defined]
        else:
            request.kcoord_was = tokens.described(ApiToken.objects.get(pk=obj.pk))  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Store the rules, and record what the token was and is."""
        super().save_related(request, form, formsets, change)
        token = ApiToken.objects.get(pk=form.instance.pk)
        was = getattr(request, "kcoord_was", None)
        act = "token.change" if change else "token.create"
        record_here(Act(act, "token", token.name, before=was, after=tokens.described(token)))

    def delete_model(self, request: HttpRequest, obj: ApiToken) -> None:
        """Delete a token."""
        tokens.delete_token(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """Delete tokens."""
        for token in queryset:
            tokens.delete_token(token.pk)

    def response_add(self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None) -> HttpResponse:
        """Show the secret on the page itself: a message would be sent in a cookie."""
        context = {
            **self.admin_site.each_context(request),
            "title": f"Token {obj.name}",
            "secret": request.kcoord_secret,  # type: ignore[attr-defined]
            "token": obj,
            "opts": self.model._meta,
        }
        response = TemplateResponse(request, "admin/kcoord/apitoken/created.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response


class QuotaForm(forms.ModelForm):  # type: ignore[type-arg]
    """A limit; all but the default name whose it is."""

    class Meta:
        model = Quota
        fields = ("kind", "name", "budget", "limit")

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError for a limit that would never admit anything, and for a name that does not belong."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        limit, kind = given.get("limit"), given.get("kind")
        if limit is not None and limit <= 0:
            raise forms.ValidationError({"limit": "A limit is above 0; leave it empty for no limit."})
        if kind and (kind == Quota.Kind.DEFAULT) == bool(given.get("name")):
            name = "The default has no name." if kind == Quota.Kind.DEFAULT else f"Say which {kind}."
            raise forms.ValidationError({"name": name})
        return given


@admin.register(Quota)
class QuotaAdmin(ForClusterAdministrators, ModelAdmin):  # type: ignore[misc]
    """How much principals may use."""

    form = QuotaForm
    list_display = ("kind", "name", "budget", "limit")
    list_filter = ("kind", "budget")
    search_fields = ("name",)
    ordering = ("kind", "name", "budget")

    def save_model(self, request: HttpRequest, obj: Quota, form: Any, change: bool) -> None:
        """Store a limit, and record it."""
        with recorded(Kind(obj.kind), obj.name):
            super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: Quota) -> None:
        """Remove a limit, and record it."""
        with recorded(Kind(obj.kind), obj.name):
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Quota]) -> None:
        """Remove limits, and record each."""
        for quota in queryset:
            self.delete_model(request, quota)


@admin.register(Throttled)
class ThrottledAdmin(ReadOnlyAdmin):
    """Who was throttled by quotas within the last hour."""

    list_display = ("kind", "name", "budget", "limit", "used", "times", "since", "throttled_at")
    fields = list_display
    readonly_fields = list_display


read_only(TimerHeartbeat, "ticked_at", order="id")
read_only(Counter, "name value", order="name")


@admin.register(AuditRecord)
class AuditRecordAdmin(ReadOnlyAdmin):
    """The audit, newest first. The dashboard has a page of it; `manage.py audit verify` checks its chain."""

    list_display = ("seq", "at", "principal", "act", "resource", "name", "result", "count")
    list_filter = ("result", "door")
    search_fields = ("=seq", "=principal", "=name")
    search_help_text = "The complete number, principal or name"
    fields = (
        "seq", "at", "kind", "principal", "principal_id", "door", "address", "request_id", "act", "resource", "name",
        "before", "after", "reason", "result", "error", "count", "previous", "own",
    )  # fmt: skip
    readonly_fields = ("previous", "own")
    ordering = ("-seq",)

    @admin.display(description="previous hash")
    def previous(self, record: AuditRecord) -> str:
        """The hash of the record before, in hex."""
        return bytes(record.prev).hex()

    @admin.display(description="hash")
    def own(self, record: AuditRecord) -> str:
        """Its own hash, in hex."""
        return bytes(record.hash).hex()


@admin.register(AuditChain)
class AuditChainAdmin(ReadOnlyAdmin):
    """Where the chain of the audit begins and ends."""

    list_display = ("seq", "removed_through", "removed")
    fields = ("seq", "head", "removed_through", "removed", "removed_at")
    readonly_fields = ("head",)

    @admin.display(description="head")
    def head(self, chain: AuditChain) -> str:
        """The hash of the last record, in hex."""
        return bytes(chain.hash).hex()


def _now_ms() -> int:
    with connection.cursor() as cursor:
        cursor.execute(queries("kcoord").read_clock, {"override": None})
        return int(cursor.fetchone()[0])


User = get_user_model()
admin.site.unregister(User)
admin.site.unregister(AccountGroup)
# Its pages stand beside those of consumer groups. Migrations compare what the class was declared with.
AccountGroup._meta.verbose_name = "group of people"
admin_theme.use_titles()
admin.site.index_title = "Admin"


class AccountForm(RoleForm, UserChangeForm):  # type: ignore[misc]
    """An account, to which a role can be given."""


@admin.register(User)
class UserAdmin(RulesRecorded, ChangedByAdministrators, DjangoUserAdmin, ModelAdmin):  # type: ignore[misc, type-arg]
    """People who can sign in."""

    form = AccountForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    inlines = (AccessRuleInline,)

    def get_inlines(self, request: HttpRequest, obj: Model | None) -> Any:
        """Rules are given once the account exists."""
        return () if obj is None else super().get_inlines(request, obj)


@admin.register(AccountGroup)
class AccountGroupAdmin(RulesRecorded, ChangedByAdministrators, DjangoGroupAdmin, ModelAdmin):  # type: ignore[misc]
    """Groups of people, with the rules and permissions that they have together; unrelated to consumer groups."""

    form = RoleForm
    fieldsets = ((None, {"fields": ("name", "permissions")}),)
    inlines = (AccessRuleInline,)


def kind_filter(kinds: type[Enum]) -> type[admin.SimpleListFilter]:
    """A filter by `kind` that offers fixed values: Django would read the whole table to find them."""

    class KindFilter(admin.SimpleListFilter):
        title = "kind"
        parameter_name = "kind"

        def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
            """The choices."""
            return [(kind.value, kind.value.replace("_", " ")) for kind in kinds]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            """The rows of the chosen kind."""
            return queryset if self.value() is None else queryset.filter(kind=self.value())

    return KindFilter
