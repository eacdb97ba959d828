"""The secret before the last rotation of a token, and when the token was last used."""

import kcoord.database.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("kcoord", "0006_hot_rows")]
    operations = [
        migrations.AddField(
            "apitoken",
            "last_used_at",
            kcoord.database.fields.MillisField(
                null=True, editable=False, help_text="Rounded down to a minute or so."
            ),
        ),
        migrations.AddField(
            "apitoken", "previous_digest", models.CharField(max_length=64, unique=True, null=True, editable=False)
        ),
        migrations.AddField(
            "apitoken",
            "previous_until",
            kcoord.database.fields.MillisField(
                null=True, editable=False, help_text="Until then the secret before works, too."
            ),
        ),
    ]
