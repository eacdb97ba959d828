"""People keep what they could do when rules begin to hold for them.

Until now those who signed in saw everything, and Django's permissions allowed the rest. Rules given here never allow more
than that: an account that could change the settings of groups gets `admin` on groups only if it could do everything else
that `admin` allows; one that could create or rotate tokens could give itself any right, so it gets everything.
Permissions to see or to delete tokens alone have no rule that amounts to them.
"""

from django.db import migrations

KEEP = """
create temporary table kcoord_had (user_id bigint, group_id bigint, permission text) on commit drop;
insert into kcoord_had
select held.user_id, held.group_id, c.app_label || '.' || p.codename
from (select user_id, null::bigint as group_id, permission_id from auth_user_user_permissions
      union all
      select null, group_id, permission_id from auth_group_permissions) held
join auth_permission p on p.id = held.permission_id
join django_content_type c on c.id = p.content_type_id;

insert into kcoord_accessrule (user_id, effect, operation, resource, pattern, name)
select u.id, 'allow', 'describe', kind.resource, 'prefix', ''
from auth_user u
cross join (values ('group'), ('topic'), ('transactional-id'), ('cluster')) as kind (resource)
where u.is_active and not u.is_superuser;

insert into kcoord_accessrule (user_id, group_id, effect, operation, resource, pattern, name)
select distinct h.user_id, h.group_id, 'allow', a.operation, a.resource, 'prefix', ''
from kcoord_had h
join (values ('groups.change_group', 'kick', 'group'),
             ('groups.delete_member', 'kick', 'group'),
             ('groups.add_group', 'alter-offsets', 'group'),
             ('groups.add_group', 'read', 'topic'),
             ('groups.delete_group', 'delete', 'group'),
             ('offsets.delete_committedoffset', 'delete', 'group'),
             ('offsets.delete_committedoffset', 'read', 'topic'),
             ('offsets.change_retentionpin', 'alter-offsets', 'group'),
             ('offsets.add_offsetplan', 'alter-offsets', 'group'),
             ('offsets.add_offsetplan', 'read', 'topic'),
             ('offsets.change_offsetplan', 'alter-offsets', 'group'),
             ('offsets.change_offsetplan', 'read', 'topic'),
             ('offsets.add_sparkrun', 'admin', 'cluster'),
             ('kcoord.add_apitoken', 'admin', 'group'),
             ('kcoord.add_apitoken', 'admin', 'topic'),
             ('kcoord.add_apitoken', 'admin', 'transactional-id'),
             ('kcoord.add_apitoken', 'admin', 'cluster'),
             ('kcoord.change_apitoken', 'admin', 'group'),
             ('kcoord.change_apitoken', 'admin', 'topic'),
             ('kcoord.change_apitoken', 'admin', 'transactional-id'),
             ('kcoord.change_apitoken', 'admin', 'cluster')) as a (permission, operation, resource)
    on a.permission = h.permission
left join auth_user u on u.id = h.user_id
where u.id is null or u.is_active and not u.is_superuser;

insert into kcoord_accessrule (user_id, group_id, effect, operation, resource, pattern, name)
select h.user_id, h.group_id, 'allow', 'admin', 'group', 'prefix', ''
from kcoord_had h
left join auth_user u on u.id = h.user_id
where u.id is null or u.is_active and not u.is_superuser
group by h.user_id, h.group_id
having array_agg(h.permission) @> array['groups.change_groupconfigoverride', 'groups.change_group',
                                        'groups.delete_member', 'groups.delete_group', 'offsets.add_offsetplan',
                                        'offsets.change_offsetplan']
on conflict do nothing;
drop table kcoord_had;
"""

REMOVE = """
delete from kcoord_accessrule where token_id is null or effect = 'deny';
"""


class Migration(migrations.Migration):

    dependencies = [
        ("contenttypes", "0002_remove_content_type_name"),
        ("kcoord", "0009_rules_of_people"),
    ]

    operations = [migrations.RunSQL(KEEP, REMOVE)]
