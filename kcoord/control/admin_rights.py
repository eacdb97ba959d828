"""Who may change accounts, groups, tokens and rules in the admin, and the rules that it shows of each.

Django's permission to change accounts, or to add rules, is enough to give oneself every right, so here it takes an
administrator as well (`Principal.administers`): those who may do everything have nothing to gain. What Django's own
permissions are about, and superusers, is for superusers alone.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.db.models import Model
from django.http import HttpRequest
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from kcoord.access.audit.recording import Act, record_here
from kcoord.access.people import principal_of
from kcoord.access.read_only import is_read_only
from kcoord.access.roles import ROLES, role
from kcoord.access.store import HolderName, add_rules
from kcoord.access.tokens import NAME_MAX, Rule, check_rule
from kcoord.models import AccessRule


def administers(request: HttpRequest) -> bool:
    """The account of the request may do everything."""
    found: bool | None = getattr(request, "kcoord_administers", None)
    if found is None:
        found = principal_of(request.user).administers
        request.kcoord_administers = found  # type: ignore[attr-defined]
    return found


class ChangedByAdministrators:
    """Rows that only administrators add, change and delete; Django's permissions are needed besides.

    Nobody does while the pages are read-only.
    """

    def has_add_permission(self, request: HttpRequest) -> bool:
        """The account is an administrator and has the permission."""
        return self._may(request) and bool(super().has_add_permission(request))  # type: ignore[misc]

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """The same; a superuser is changed, and gets a password, by superusers alone."""
        return self._may(request, obj) and bool(super().has_change_permission(request, obj))  # type: ignore[misc]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """The same; a superuser is deleted by superusers alone."""
        return self._may(request, obj) and bool(super().has_delete_permission(request, obj))  # type: ignore[misc]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Django's permissions, and who is a superuser, are up to superusers."""
        found = super().get_readonly_fields(request, obj)  # type: ignore[misc]
        if getattr(request.user, "is_superuser", False):
            return found
        model: type[Model] = self.model  # type: ignore[attr-defined]
        own = {field.name for field in (*model._meta.fields, *model._meta.many_to_many)}
        return (*found, *(name for name in ("is_superuser", "user_permissions", "permissions") if name in own))

    def _may(self, request: HttpRequest, obj: Model | None = None) -> bool:
        of_superuser = isinstance(obj, get_user_model()) and obj.is_superuser
        return (
            administers(request)
            and not is_read_only()
            and (bool(getattr(request.user, "is_superuser", False)) or not of_superuser)
        )


class AccessRuleForm(forms.ModelForm):  # type: ignore[type-arg]
    """A rule; a rule for a single name must name it."""

    class Meta:
        model = AccessRule
        fields = ("effect", "operation", "resource", "pattern", "name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # In a table the heads of its columns are no labels of its fields.
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError for a rule that could not be added in other ways either."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors:
            rule = Rule(given["operation"], given["resource"], given["pattern"], given["name"], given["effect"])
            try:
                check_rule(rule)
            except ValueError as error:
                field, _, fault = str(error).partition(": ")
                raise forms.ValidationError({field: f"{fault[:1].upper()}{fault[1:]}."}) from None
        return given


class AccessRuleInline(ChangedByAdministrators, TabularInline):  # type: ignore[misc]
    """The rules of an account or a group of people."""

    model = AccessRule
    form = AccessRuleForm
    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """The account is an administrator and has the permission."""
        return administers(request) and bool(TabularInline.has_add_permission(self, request, obj))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All fields of a rule can be changed by those who may change rules."""
        return ()


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    """An account or a group of people, to which the rules of a role can be added."""

    give_role = forms.ChoiceField(
        label="Give a role",
        required=False,
        choices=[("", "–"), *((one.key, f"{one.label}: {one.help}") for one in ROLES.values())],
        widget=UnfoldAdminSelectWidget,
        help_text="Saving adds its rules to those below.",
    )
    role_prefix = forms.CharField(
        label="On names that begin with",
        required=False,
        max_length=NAME_MAX,
        widget=UnfoldAdminTextInputWidget,
        help_text="Empty: on everything.",
    )

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError for a prefix that belongs to no role."""
        given: dict[str, Any] = super().clean() or self.cleaned_data
        key, prefix = given.get("give_role", ""), given.get("role_prefix", "")
        try:
            if prefix and not key:
                raise ValueError("prefix: it belongs to a role; choose one")
            if key:
                role(key).rules(prefix)
        except ValueError as error:
            fault = str(error).partition(": ")[2]
            raise forms.ValidationError({"role_prefix": f"{fault[:1].upper()}{fault[1:]}."}) from None
        return given


class RulesRecorded:
    """Rules of an account or a group of people, one by one or those of a role; changes are recorded in the audit."""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """With the fields that give a role, for those who may change rules."""
        found = super().get_fieldsets(request, obj)  # type: ignore[misc]
        is_group = not issubclass(self.model, get_user_model())  # type: ignore[attr-defined]
        if not (obj is not None or is_group) or not self.has_change_permission(request, obj):  # type: ignore[attr-defined]
            return found
        return (*found, ("Role", {"fields": ("give_role", "role_prefix")}))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Store the rules, and record which were added and removed. A role is added last."""
        holder = form.instance
        before = set(map(str, holder.access_rules.all()))
        super().save_related(request, form, formsets, change)  # type: ignore[misc]
        after = set(map(str, holder.access_rules.all()))
        kind = "User" if isinstance(holder, get_user_model()) else "Group"
        for act, was, now in (("rule.remove", before - after, None), ("rule.add", None, after - before)):
            if was or now:
                shown = [None if rules is None else {"rules": sorted(rules)} for rules in (was, now)]
                record_here(Act(act, "rule", f"{kind}:{holder}", shown[0], shown[1]))
        if form.cleaned_data.get("give_role"):
            rules = role(form.cleaned_data["give_role"]).rules(form.cleaned_data["role_prefix"])
            add_rules(HolderName(kind, str(holder)), rules)


class TokenRuleInline(AccessRuleInline):
    """The rules of a token. A token without rules may do nothing, so one is required."""

    min_num = 1
    validate_min = True
