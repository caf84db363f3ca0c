-- A key by its id, or the one of a member with a fingerprint that is not removed. $1 key id or null,
-- $2 member or null, $3 fingerprint or null.
SELECT key_id, member_id, public_key, added_at, expires_at, removed_at,
       coalesce(expires_at <= clock_timestamp(), false)
  FROM ssh_access.member_key
 WHERE key_id = $1
UNION ALL
SELECT key_id, member_id, public_key, added_at, expires_at, removed_at,
       coalesce(expires_at <= clock_timestamp(), false)
  FROM ssh_access.member_key
 WHERE member_id = $2 AND fingerprint = $3 AND removed_at IS NULL
