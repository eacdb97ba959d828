-- name: offsets_are_stored
-- Where a commit would go: the current offsets and their journal.
select to_regclass('offsets_committedoffset') is not null and to_regclass('offset_commit_log') is not null
