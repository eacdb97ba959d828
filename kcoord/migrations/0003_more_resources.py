"""Rules about transactional ids and the cluster.

Existing tokens keep what they may do. One with admin on every group and every topic could always give itself any right,
since it may make tokens; so that it still may, it gets admin on what is new.
"""

from django.db import migrations, models

ADMINS_OF_EVERYTHING = """
insert into kcoord_accessrule (token_id, operation, resource, pattern, name)
select t.id, 'admin', new.resource, 'prefix', ''
from kcoord_apitoken t
cross join (values ('transactional-id'), ('cluster')) as new (resource)
where 2 = (select count(distinct r.resource) from kcoord_accessrule r
           where r.token_id = t.id and r.operation = 'admin' and r.pattern = 'prefix' and r.name = ''
             and r.resource in ('group', 'topic'))
on conflict do nothing
"""
OF_THE_NEW = "delete from kcoord_accessrule where resource in ('transactional-id', 'cluster')"


class Migration(migrations.Migration):

    dependencies = [
        ('kcoord', '0002_pgmq'),
    ]

    operations = [
        migrations.AlterField(
            model_name='accessrule',
            name='resource',
            field=models.CharField(choices=[('group', 'Group'), ('topic', 'Topic'), ('transactional-id', 'Transactional Id'), ('cluster', 'Cluster')], max_length=16),
        ),
        migrations.RunSQL(ADMINS_OF_EVERYTHING, OF_THE_NEW),
    ]
