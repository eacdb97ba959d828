"""`kcoord.commit_offsets` takes no member for gone whose session a node may have renewed in memory. See docs/sinks.md."""

from importlib import import_module
from pathlib import Path

from django.db import migrations

FILE = Path(__file__).with_name("sql") / "0013_unstored_sessions.sql"
before = import_module("offsets.migrations.0012_expiry_by_owner")


def replace(apps, schema_editor):
    """Replace the function."""
    before._run(schema_editor, FILE.read_text(encoding="utf-8"))


def restore(apps, schema_editor):
    """The function as it was."""
    text = before.FILE.read_text(encoding="utf-8")
    before._run(schema_editor, text.replace("create function", "create or replace function"))


class Migration(migrations.Migration):
    dependencies = [("offsets", "0012_expiry_by_owner"), ("groups", "0014_flushed_until")]
    operations = [migrations.RunPython(replace, restore)]
