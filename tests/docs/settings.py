"""docs/settings.md: every setting by topic, from their declarations, and the limits that are not settings."""

from __future__ import annotations

from kcoord.constants import CONSTANTS
from kcoord.management.commands.settings_reference import as_table
from kcoord.setting_table import TOPICS
from tests.docs.pages import ROOT

PATH = ROOT / "docs" / "settings.md"

HEAD = """# Settings

All settings are environment variables, which are checked before anything starts. In answers, problems and checks a
setting has its name instead: `KCOORD_HTTP_MAX_BODY_BYTES` is `http.max.body.bytes`. See also
[which ones you need first](operations/start.md#settings); `manage.py settings_reference` lists the values in effect.
"""

FIXED = """
## Limits that are not settings

They have a name, since answers and other pages mention them, but no variable.

| name | value | why |
| --- | --- | --- |
"""


def render() -> str:
    """The page."""
    settings = "".join(f"\n## {title}\n\n{as_table(found)}\n" for title, found in TOPICS)
    fixed = "".join(f"| `{one.name}` | {str(one.value).lower()} | {one.why} |\n" for one in CONSTANTS)
    return HEAD + settings + FIXED + fixed
