"""The queue that Celery uses by default lives in the same Postgres: install PGMQ's SQL."""

from django.db import migrations
from pgmq.install import get_embedded_install_sql


def install(apps, schema_editor):
    """Install it once; a schema that is there already (the extension, say) is left alone."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("select to_regnamespace('pgmq') is not null")
        if not cursor.fetchone()[0]:
            cursor.execute(get_embedded_install_sql())


class Migration(migrations.Migration):
    dependencies = [("kcoord", "0001_initial")]
    operations = [migrations.RunPython(install, migrations.RunPython.noop)]
