-- Adds a key of a member. $1 key id, $2 member, $3 key, $4 fingerprint, $5 end or null.
-- The row of the member counts the keys that are not removed, and its lock lets them come one after
-- the other. A key that the member has already violates member_key_once, and leaves nothing behind.
-- No time: the member has as many keys as it may have, or the end has passed, which is told.
WITH counted AS (
    INSERT INTO ssh_access.member AS m (member_id, keys)
    SELECT $2, 1 WHERE coalesce($5 > clock_timestamp(), true)
    ON CONFLICT (member_id) DO UPDATE SET keys = m.keys + 1 WHERE m.keys < 32
    RETURNING member_id
), new AS (
    INSERT INTO ssh_access.member_key (key_id, member_id, public_key, fingerprint, expires_at)
    SELECT $1, member_id, $3, $4, $5 FROM counted
    RETURNING added_at
), told AS (
    INSERT INTO ssh_access.changed_member (member_id) SELECT $2 FROM new
)
SELECT new.added_at, coalesce($5 <= clock_timestamp(), false)
  FROM (VALUES (1)) always LEFT JOIN new ON true
