"""Regular expressions are resolved by the rights of the members that use them.

What was resolved so far was resolved with the rights of one member or another. It becomes what is resolved with all
rights, of a catalogue so old that the next heartbeat asks for a resolution; of a member with fewer rights its next
heartbeat takes what it may not describe. A resolution that was out is asked for again.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("groups", "0008_generation_topics")]
    operations = [
        migrations.AddField(
            model_name="consumermember",
            name="topic_rights",
            field=models.CharField(
                blank=True,
                db_default="",
                help_text="Digest of what it may describe of topics; empty: all.",
                max_length=64,
            ),
        ),
        migrations.AlterField(
            model_name="group",
            name="resolution",
            field=models.JSONField(help_text="What regular expressions match, by the rights of members.", null=True),
        ),
        migrations.RunSQL(
            """
            update groups_group
            set resolution = jsonb_build_object('', resolution || '{"topics_version": -1}'),
                jobs = nullif(jobs - 'regex', '{}'), version = version + 1
            where resolution is not null or jobs ? 'regex'
            """,
            "update groups_group set resolution = null, jobs = nullif(jobs - 'regex', '{}'), version = version + 1"
            " where resolution is not null or jobs ? 'regex'",
        ),
    ]
