"""An account to sign in with on a running server."""

from __future__ import annotations

import psycopg
from django.contrib.auth.hashers import make_password

USER, PASSWORD = "mara", "correct horse battery staple"


def make_user(database: str) -> None:
    """Make the account, which may do everything, by SQL: the process under test is another one."""
    with psycopg.connect(database) as connection:
        connection.execute(
            "insert into auth_user (username, password, is_superuser, is_staff, is_active, date_joined,"
            " first_name, last_name, email) values (%s, %s, true, true, true, now(), '', '', '')",
            (USER, make_password(PASSWORD)),
        )
