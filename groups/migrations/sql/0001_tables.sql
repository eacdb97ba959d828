-- What Django cannot declare of the tables of groups.

-- Members, pending ids, assignments and topics of generations go with their group, in the database itself.
alter table groups_member add constraint groups_member_group_fk
    foreign key (group_id) references groups_group (id) on delete cascade;
alter table groups_pendingmember add constraint groups_pendingmember_group_fk
    foreign key (group_id) references groups_group (id) on delete cascade;
alter table groups_assignment add constraint groups_assignment_group_fk
    foreign key (group_id) references groups_group (id) on delete cascade;
alter table groups_consumermember add constraint groups_consumermember_group_fk
    foreign key (group_id) references groups_group (id) on delete cascade;
alter table groups_generationtopics add constraint groups_generationtopics_group_fk
    foreign key (group_id) references groups_group (id) on delete cascade;

-- Room for HOT updates on rows that change with every tick or request, and vacuum before they bloat: a page that is
-- filled to the given percentage leaves the new version of a row beside the old one.
alter table groups_group set (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
alter table groups_member set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
alter table groups_consumermember set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
alter table groups_assignment set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
alter table groups_watermark set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
-- Written by every renewal of a lease.
alter table groups_coordinatornode set (fillfactor = 30, autovacuum_vacuum_threshold = 500);
alter table groups_coordinatorpartition set (fillfactor = 50);
