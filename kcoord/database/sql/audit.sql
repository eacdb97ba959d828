-- name: append_audit
select kcoord_audit_append(%(clock)s::bigint, %(kind)s::text, %(principal)s::text, %(principal_id)s::text,
                           %(address)s::text, %(request_id)s::text, %(door)s::text, %(act)s::text, %(resource)s::text,
                           %(name)s::text, %(before)s::text, %(after)s::text, %(reason)s::text, %(result)s::text,
                           %(error)s::text, %(count)s::integer)

-- name: read_audit_chain
select c.seq, c.hash, c.removed_through, c.removed_hash, c.removed,
       (select count(*) from kcoord_auditpending) as pending
from kcoord_auditchain c

-- name: read_audit
-- A part of the chain in its order.
select r.seq, r.prev, r.hash, r.at, r.kind, r.principal, r.principal_id, r.address, r.request_id, r.door, r.act,
       r.resource, r.name, r.before, r.after, r.reason, r.result, r.error, r.count
from kcoord_auditrecord r
where r.seq > %(after)s and r.at >= %(since)s and r.at < %(until)s
order by r.seq
limit %(limit)s

-- name: trim_audit
select gone, through, head from kcoord_audit_trim(%(before)s::bigint, %(most)s::bigint)

-- name: list_audit
-- The audit, newest first, as far as somebody may see it (kcoord/access/audit/reading.py).
select r.seq, r.prev, r.hash, r.at, r.kind, r.principal, r.principal_id, r.address, r.request_id, r.door, r.act,
       r.resource, r.name, r.before, r.after, r.reason, r.result, r.error, r.count
from kcoord_auditrecord r
where r.seq < %(before_seq)s
  and r.at >= %(since)s and r.at < %(until)s
  and (%(acts)s::text[] is null or r.act = any(%(acts)s))
  and (%(resources)s::text[] is null or r.resource = any(%(resources)s))
  and (%(result)s::text is null or r.result = %(result)s)
  and (%(who)s::text is null or strpos(lower(r.principal), lower(%(who)s)) > 0)
  and (%(name)s::text is null or strpos(lower(r.name), lower(%(name)s)) > 0)
  and (%(everything)s::boolean
       or (r.resource = 'group' and r.result = 'done'
           and kcoord_sees(r.name, %(group_names)s, %(group_prefixes)s, %(group_denied)s, %(group_denied_prefixes)s))
       or (r.resource = 'topic' and r.result = 'done'
           and kcoord_sees(r.name, %(topic_names)s, %(topic_prefixes)s, %(topic_denied)s, %(topic_denied_prefixes)s))
       or (r.resource = 'run' and r.result = 'done' and %(runs)s::boolean))
order by r.seq desc
limit %(limit)s
