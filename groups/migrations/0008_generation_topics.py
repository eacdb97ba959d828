"""The topics of a classic group's generation stand beside it; of groups that are there, those their members say now."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from kcoord.protocol.consumer_protocol import decode_subscription

BATCH = 500


def topics_of(group, members):
    """What the members name for the protocol of their group; None where that cannot be told."""
    names = set()
    for protocol_names, protocol_metadata in members:
        metadata = dict(zip(reversed(protocol_names), reversed(protocol_metadata))).get(group.protocol_name)
        subscription = None if metadata is None else decode_subscription(bytes(metadata))
        if subscription is None:
            return None
        names.update(subscription.topics)
    return sorted(names)


def fill(apps, schema_editor):
    """A group that has never begun a generation is left out: nothing can be told of it yet."""
    Group, Member = apps.get_model("groups", "Group"), apps.get_model("groups", "Member")
    GenerationTopics = apps.get_model("groups", "GenerationTopics")
    groups = Group.objects.filter(type="classic", protocol_type="consumer", generation_id__gt=0)
    for group in groups.iterator(chunk_size=BATCH):
        members = Member.objects.filter(group_id=group.pk).values_list("protocol_names", "protocol_metadata")
        topics = topics_of(group, members.iterator(chunk_size=BATCH))
        if topics is not None:
            GenerationTopics.objects.bulk_create([GenerationTopics(group_id=group.pk, topics=topics)])


class Migration(migrations.Migration):
    dependencies = [("groups", "0007_version_tag")]
    operations = [
        migrations.CreateModel(
            name="GenerationTopics",
            fields=[
                (
                    "group",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="generation_topics",
                        serialize=False,
                        to="groups.group",
                    ),
                ),
                ("topics", django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
            ],
            options={"abstract": False},
        ),
        migrations.RunSQL(
            "alter table groups_generationtopics add constraint groups_generationtopics_group_fk"
            " foreign key (group_id) references groups_group (id) on delete cascade",
            "alter table groups_generationtopics drop constraint groups_generationtopics_group_fk",
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
