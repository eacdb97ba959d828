"""Sign-in attempts, identities at a provider, saved views, and what ends the streams of people."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.functions.text
import kcoord.database.fields
from django.conf import settings
from django.db import migrations, models


NOTIFY = (Path(__file__).parent / "sql" / "0001_notify.sql").read_text(encoding="utf-8")


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('sessions', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SignInAttempt',
            fields=[
                ('key', models.CharField(max_length=300, primary_key=True, serialize=False)),
                ('failures', models.PositiveIntegerField()),
                ('last_at', kcoord.database.fields.MillisField()),
            ],
            options={
                'indexes': [models.Index(fields=['last_at'], name='frontend_signin_by_time')],
            },
        ),
        migrations.CreateModel(
            name='ProviderIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=500)),
                ('subject', models.CharField(max_length=255)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'provider identity',
                'verbose_name_plural': 'provider identities',
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='frontend_provideridentity_once')],
            },
        ),
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('query', models.TextField(blank=True)),
                ('created_at', kcoord.database.fields.MillisField()),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': [django.db.models.functions.text.Lower('name'), 'name'],
                'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='frontend_savedview_name')],
            },
        ),
        migrations.RunSQL(NOTIFY),
    ]
