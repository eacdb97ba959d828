"""How to reach Postgres: one libpq connection string, from a URL or from the embedded server's directory.

The string is in key=value form: a URL cannot safely carry the embedded server's socket directory everywhere.
"""

from __future__ import annotations

from pathlib import Path

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

EMBEDDED_DATABASE = "kcoord"
EMBEDDED_OWNER = "kcoord_owner"
CONNINFO_FILE = "conninfo"


def pgdata(data_dir: Path) -> Path:
    """Where the embedded server keeps its files."""
    return data_dir / "postgres"


def libpq_conninfo(database_url: str, data_dir: Path) -> str:
    """The connection string in key=value form, with every option of the URL.

    A URL without a database gets the one that libpq would choose, because Django needs to know. Without a URL it is
    what the embedded server wrote to `data_dir`/conninfo when it started; before the first start it is an address where
    no server answers, which is accurate. Raises psycopg.ProgrammingError for a malformed URL.
    """
    if database_url:
        parts = {key: str(value) for key, value in conninfo_to_dict(database_url).items()}
        if "dbname" not in parts and "service" not in parts:
            parts["dbname"] = _default("dbname") or parts.get("user") or _default("user")
        return make_conninfo("", **parts)
    written = data_dir / CONNINFO_FILE
    if written.is_file():
        return written.read_text().strip()
    return make_conninfo(host=str(pgdata(data_dir)), dbname=EMBEDDED_DATABASE, user=EMBEDDED_OWNER)


def _default(keyword: str) -> str:
    """What libpq uses where an address does not say: its environment variable, or for the user the system's name."""
    defaults = {option.keyword: option.val for option in pq.Conninfo.get_defaults()}
    return (defaults[keyword.encode()] or b"").decode()


def django_database(conninfo: str) -> dict[str, object]:
    """Django's DATABASES entry for a connection string."""
    parts = dict(conninfo_to_dict(conninfo))
    return {
        "ENGINE": "kcoord.database.django_backend",
        "NAME": parts.pop("dbname", ""),  # empty only with a service, which names it
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": str(parts.pop("port", "")),
        # Under ASGI each request has its own thread: a connection that outlives its request would be lost.
        "CONN_MAX_AGE": 0,
        "OPTIONS": parts,
    }
