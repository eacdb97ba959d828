-- Offsets go with their group, in the database itself, which Django cannot declare.
alter table offsets_committedoffset add constraint offsets_committedoffset_group_fk
    foreign key (group_id) references groups_group (id) on delete cascade;
alter table offsets_pendingoffset add constraint offsets_pendingoffset_group_fk
    foreign key (group_id) references groups_group (id) on delete cascade;

-- Room for HOT updates on rows that change with every commit or sample, and vacuum before they bloat: a page that is
-- filled to the given percentage leaves the new version of a row beside the old one.
alter table offsets_committedoffset set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
alter table offsets_pendingoffset set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
alter table offsets_producer set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
alter table offsets_grouplag set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
alter table offsets_topiclag set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
alter table offsets_topictotal set (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
