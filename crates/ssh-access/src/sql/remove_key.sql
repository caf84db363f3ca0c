-- Removes a key, for ever. $1 key id, $2 its member, or null for whoever's it is.
-- No row: it is absent or another member's, or was removed already.
WITH locked AS MATERIALIZED (
    SELECT m.member_id
      FROM (SELECT member_id FROM ssh_access.member_key WHERE key_id = $1 OFFSET 0) target
      JOIN ssh_access.member m ON m.member_id = target.member_id
     WHERE $2 IS NULL OR m.member_id = $2
       FOR NO KEY UPDATE OF m
), gone AS (
    UPDATE ssh_access.member_key k
       SET removed_at = clock_timestamp()
      FROM locked
     WHERE k.key_id = $1 AND k.removed_at IS NULL
    RETURNING k.member_id, k.removed_at
), counted AS (
    UPDATE ssh_access.member m
       SET keys = m.keys - 1
      FROM gone
     WHERE m.member_id = gone.member_id
), told AS (
    INSERT INTO ssh_access.changed_member (member_id) SELECT member_id FROM gone
)
SELECT removed_at FROM gone
