-- Brings members of whom something changed to the Sites where they have or had an account. It is of
-- no Site: whoever propagates to one does it for all.
-- A row that is seen here was committed with its change, so this statement sees both the accounts and
-- whatever was changed before; what is committed later has a row of its own.
-- The Sites that have something to do now.
WITH oldest AS MATERIALIZED (
    SELECT change_id FROM ssh_access.changed_member
     ORDER BY change_id
     LIMIT 1000
       FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM ssh_access.changed_member c USING oldest
     WHERE c.change_id = oldest.change_id
    RETURNING c.change_id, c.member_id, c.changed_at
), members AS (
    SELECT member_id, max(change_id) AS last_change, min(changed_at) AS since
      FROM taken GROUP BY member_id
), spread AS (
    INSERT INTO ssh_access.pending_member AS p (site, member_id, last_change, since)
    SELECT a.site, m.member_id, m.last_change, m.since
      FROM members m,
           LATERAL (SELECT DISTINCT site FROM ssh_access.site_account
                     WHERE member_id = m.member_id OFFSET 0) a
     -- One order for all who do this at once.
     ORDER BY a.site, m.member_id
    ON CONFLICT (site, member_id)
       -- Always another one than before: change ids are given out in another order than commits, and a
       -- change with a lower one must not pass for one that somebody has seen.
       DO UPDATE SET last_change = greatest(p.last_change + 1, excluded.last_change)
    RETURNING p.site
)
SELECT (SELECT count(*) FROM taken), coalesce(array_agg(DISTINCT site), '{}') FROM spread
