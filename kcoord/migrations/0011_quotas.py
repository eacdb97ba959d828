"""Quotas of principals, which say when they change; and who was throttled."""

from django.db import migrations, models

from kcoord.database.fields import MillisField


SAY = """
create function kcoord_quotas_changed() returns trigger language plpgsql as $$
begin
    perform pg_notify('kcoord_quotas', '');
    return null;
end $$;
create trigger kcoord_quotas_changed
    after insert or delete or update on kcoord_quota for each statement execute function kcoord_quotas_changed();
"""
KEEP_QUIET = """
drop trigger kcoord_quotas_changed on kcoord_quota;
drop function kcoord_quotas_changed();
"""


class Migration(migrations.Migration):

    dependencies = [
        ("kcoord", "0010_people_keep_rights"),
    ]

    operations = [
        migrations.CreateModel(
            name='Quota',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('token', 'Token'), ('user', 'User'), ('group', 'Group'), ('default', 'Default')], help_text='A token comes before a user, a group last.', max_length=8)),
                ('name', models.CharField(blank=True, help_text='Of the token, the user or the group of people; empty for the default.', max_length=200)),
                ('budget', models.CharField(choices=[('heartbeats', 'heartbeats (per second)'), ('commits', 'commits and fetches (per second)'), ('reads', 'reads (per second)'), ('writes', 'writes (per second)'), ('bytes', 'bytes (per second)'), ('cpu', 'CPU time (ms per second)'), ('members', 'new members (per minute)'), ('groups', 'new groups (per minute)'), ('partitions', 'partitions (per minute)'), ('connections', 'connections (open at once)')], max_length=16)),
                ('limit', models.FloatField(blank=True, help_text='In the unit of the budget; empty: no limit.', null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('kind', 'name', 'budget'), name='kcoord_quota_once'), models.CheckConstraint(condition=models.Q(('limit__isnull', True), ('limit__gt', 0), _connector='OR'), name='kcoord_quota_limit'), models.CheckConstraint(condition=models.Q(models.Q(('kind', 'default'), ('name', '')), models.Q(models.Q(('kind', 'default'), _negated=True), models.Q(('name', ''), _negated=True)), _connector='OR'), name='kcoord_quota_name')],
            },
        ),
        migrations.CreateModel(
            name='Throttled',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=8)),
                ('name', models.CharField(blank=True, max_length=200)),
                ('budget', models.CharField(max_length=16)),
                ('limit', models.FloatField()),
                ('used', models.FloatField(help_text='In the unit of the limit, when it was throttled last.')),
                ('times', models.BigIntegerField(help_text='Requests, as far as they are noted: about once a minute.')),
                ('since', MillisField()),
                ('throttled_at', MillisField()),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('kind', 'name', 'budget'), name='kcoord_throttled_once')],
            },
        ),
        migrations.RunSQL(SAY, KEEP_QUIET),
    ]
