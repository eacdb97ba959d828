from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("offsets", "0007_journal_changes")]

    operations = [
        migrations.AddField(
            model_name="activity",
            name="lag",
            field=models.BigIntegerField(
                help_text="Of all groups together; null: of none is it known as of now.", null=True
            ),
        ),
    ]
