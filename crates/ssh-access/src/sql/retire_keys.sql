-- Marks the keys of a member that have expired as removed, so that they no longer count. $1 member.
-- They are in force nowhere, or will soon be taken out for their end; so nobody is told.
WITH locked AS MATERIALIZED (
    SELECT member_id FROM ssh_access.member WHERE member_id = $1 FOR NO KEY UPDATE
), gone AS (
    UPDATE ssh_access.member_key k
       SET removed_at = clock_timestamp()
      FROM locked
     WHERE k.member_id = locked.member_id AND k.removed_at IS NULL
       AND k.expires_at <= clock_timestamp()
    RETURNING k.key_id
), counted AS (
    UPDATE ssh_access.member m
       SET keys = m.keys - (SELECT count(*)::integer FROM gone)
     WHERE m.member_id = $1 AND EXISTS (SELECT FROM gone)
)
SELECT count(*) FROM gone
