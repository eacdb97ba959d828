"""Share groups: what their members have is stored with them, because a partition has several of them."""

from django.db import migrations, models

STATES = (
    models.Q(type="classic", state__in=["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"])
    | models.Q(type="consumer", state__in=["Empty", "Assigning", "Reconciling", "Stable"])
    | models.Q(type="share", state__in=["Empty", "Stable"])
)  # fmt: skip


class Migration(migrations.Migration):

    dependencies = [("groups", "0002_falling_watermarks")]

    operations = [
        migrations.AddField(
            "consumermember",
            "assigned",
            models.JSONField(
                null=True,
                help_text="Of a member of a share group: what it has, by topic id; null: `Assignment` has it.",
            ),
        ),
        migrations.AlterField(
            "group",
            "type",
            models.CharField(
                choices=[("classic", "Classic"), ("consumer", "Consumer"), ("share", "Share")],
                default="classic",
                max_length=16,
            ),
        ),
        migrations.RemoveConstraint("group", "groups_group_state_known"),
        migrations.AddConstraint(
            "group", models.CheckConstraint(condition=STATES, name="groups_group_state_known")
        ),
    ]
