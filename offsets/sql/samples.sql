-- name: samples_around
-- What interpolating at one instant needs of each partition that has a watermark: the sample before, the one after, and
-- the watermark itself, which may be newer than the newest sample. Two looks into the primary key per partition.
select w.partition, s.at, s.until, s.log_start_offset, s.log_end_offset
from groups_topic t
join groups_watermark w on w.topic_id = t.id
     and (%(partitions)s::int[] is null or w.partition = any(%(partitions)s))
cross join lateral (
    (select at, until, log_start_offset, log_end_offset
     from offsets_watermarksample
     where topic_id = t.id and partition = w.partition and at <= %(at)s
     order by at desc
     limit 1)
    union all
    (select at, until, log_start_offset, log_end_offset
     from offsets_watermarksample
     where topic_id = t.id and partition = w.partition and at > %(at)s
     order by at
     limit 1)
    union all
    select w.sampled_at, w.sampled_at, w.log_start_offset, w.log_end_offset
) s
where t.name = %(topic)s
order by w.partition, s.at, s.until desc
