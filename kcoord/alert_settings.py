"""The settings of alerts. Part of the table in `kcoord.config`; the rules are `offsets.core.alerts`."""

from __future__ import annotations

from kcoord.setting import Setting

RECEIVERS_FILE = "alerts.receivers.file"
LINK_URL = "alerts.link.url"

ALERTS: tuple[Setting, ...] = (
    Setting(RECEIVERS_FILE, "", "path", "TOML file that names who can be told of alerts; empty: nobody."),
    Setting(LINK_URL, "", "url", "Address of the dashboard for links in messages; empty: messages have no links."),
    Setting(
        "alerts.settle.ms",
        300_000,
        "ms",
        "How long a condition must be over before its alert is resolved: a group that comes and goes is one alert.",
        0,
        86_400_000,
    ),
)
