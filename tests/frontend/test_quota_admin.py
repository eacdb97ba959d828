"""Quotas in the admin (`QuotaAdmin`): who may change them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from kcoord.models import Quota
from tests.frontend.conftest import PASSWORD
from tests.frontend.viewers import allow

ADD = reverse("admin:kcoord_quota_add")
LIMIT = {"kind": "default", "name": "", "budget": "cpu", "limit": "5"}


def staff(client: Client, *rules: str) -> Client:
    """Sign in an account with all of Django's permissions for quotas, and these rules."""
    user = get_user_model().objects.create_user("mara", password=PASSWORD, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__model="quota"))
    allow(user, *rules)
    client.force_login(user)
    return client


def test_quota_admin_takes_admin_on_the_cluster(client: Client) -> None:
    """As `POST /v1/quotas` does; Django's permissions alone are not enough."""
    person = staff(client, "admin:group:*", "admin:topic:*", "describe:cluster:*")
    assert person.post(ADD, LIMIT).status_code == 403
    assert not Quota.objects.exists()
    allow(get_user_model().objects.get(username="mara"), "admin:cluster:*")
    assert person.post(ADD, LIMIT).status_code == 302
    quota = Quota.objects.get()
    assert (quota.kind, quota.budget, quota.limit) == ("default", "cpu", 5)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"limit": "0"}, "A limit is above 0"),
        ({"limit": "-1"}, "A limit is above 0"),
        ({"name": "mara"}, "The default has no name."),
        ({"kind": "token"}, "Say which token."),
        ({"budget": "nothing"}, "not one of the available choices"),
    ],
)
def test_quota_admin_names_what_is_wrong(operator: Client, changes: dict[str, Any], said: str) -> None:
    answer = operator.post(ADD, LIMIT | changes)
    assert answer.status_code == 200
    assert said in answer.content.decode()
    assert not Quota.objects.exists()
