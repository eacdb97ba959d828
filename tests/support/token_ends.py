"""The ends that a token may come to, as another process brings them about."""

from __future__ import annotations

import psycopg

from kcoord.access.rights import digest
from tests.support.http_members import make_token

REVOKE = """
with rules as (
    delete from kcoord_accessrule r using kcoord_apitoken t where r.token_id = t.id and t.digest = %(digest)s)
delete from kcoord_apitoken where digest = %(digest)s
"""
GIVE_OWNER = """
with owner as (
    insert into auth_user (username, password, is_superuser, first_name, last_name, email, is_staff, is_active,
                           date_joined)
    values (%(digest)s, '', false, '', '', '', false, true, now()) returning id)
update kcoord_apitoken set owner_id = (select id from owner) where digest = %(digest)s
"""
DEACTIVATE = """
update auth_user set is_active = false where id = (select owner_id from kcoord_apitoken where digest = %(digest)s)
"""
EXPIRE = "update kcoord_apitoken set expires_at = 1 where digest = %(digest)s"
EXPIRE_AT = "update kcoord_apitoken set expires_at = %(until)s where digest = %(digest)s"
ROTATE = """
update kcoord_apitoken set previous_digest = digest, digest = %(fresh)s, previous_until = %(until)s
 where digest = %(digest)s
"""

ENDS = {"revoked": REVOKE, "expired": EXPIRE, "owner deactivated": DEACTIVATE}


def owned_token(conninfo: str) -> str:
    """The secret of a token that may do everything, with an account as its owner."""
    secret = make_token(conninfo)
    change(conninfo, GIVE_OWNER, secret)
    return secret


def change(conninfo: str, statement: str, secret: str, **parameters: object) -> None:
    """Carry out one of these statements for the token with this secret."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute(statement.encode(), {"digest": digest(secret), **parameters})
