"""docs/settings.md: every setting by topic, from their declarations in `kcoord.config`."""

from __future__ import annotations

from collections.abc import Iterator

from kcoord.config import SETTINGS
from kcoord.management.commands.settings_reference import as_table
from kcoord.setting import Setting
from tests.docs.pages import ROOT

PATH = ROOT / "docs" / "settings.md"

HEAD = """# Settings

All settings are environment variables, which are checked before anything starts. In answers, problems and checks a
setting has its name instead: `KCOORD_HTTP_MAX_WAIT_MS` is `http.max.wait.ms`. See also
[which ones you need first](operations/start.md#settings); `manage.py settings_reference` lists the values in effect.
"""

TOPICS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Server",
        ("host", "port", "nodes", "data", "allowed", "secret", "secure", "trusted", "dashboard", "log", "token"),
    ),
    ("Database and queue", ("database", "broker", "cache", "notifications", "mailbox")),
    ("Coordinator nodes and timers", ("node", "advertised", "coordinator", "heartbeat", "commit", "fetch", "timer")),
    ("HTTP", ("http", "request")),
    ("Kafka's protocol", ("kafka",)),
    ("Groups", ("group", "events")),
    ("Offsets and transactions", ("offset", "offsets", "transaction", "transactional", "plans")),
    ("Lag and verdicts", ("lag", "verdict")),
    ("Alerts", ("alerts",)),
    ("Quotas", ("quota",)),
    ("Signing in", ("oidc", "password")),
    ("Audit", ("audit",)),
    ("Metrics and traces", ("metrics", "otlp")),
    ("Archive", ("archive", "spark")),
)
"""Titles, and the first words of the names of their settings."""


def render() -> str:
    """The page."""
    return HEAD + "".join(f"\n## {title}\n\n{as_table(found)}\n" for title, found in by_topic())


def by_topic() -> Iterator[tuple[str, list[Setting]]]:
    """Titles and their settings. Raises ValueError if a setting belongs to no topic."""
    topic_of = {word: title for title, words in TOPICS for word in words}
    if lost := [setting.name for setting in SETTINGS if setting.name.partition(".")[0] not in topic_of]:
        raise ValueError(f"name the topic in tests/docs/settings.py: {', '.join(lost)}")
    for title, _ in TOPICS:
        yield title, [setting for setting in SETTINGS if topic_of[setting.name.partition(".")[0]] == title]
