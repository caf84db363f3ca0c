-- Keys of a member in the order of their ids. $1 member, $2 whether also those that are removed or
-- have expired, $3 after this id, $4 rows at the most.
SELECT key_id, member_id, public_key, added_at, expires_at, removed_at,
       coalesce(expires_at <= clock_timestamp(), false)
  FROM ssh_access.member_key
 WHERE member_id = $1 AND key_id > $3
   AND ($2 OR (removed_at IS NULL
               AND (expires_at IS NULL OR expires_at > clock_timestamp())))
 ORDER BY key_id
 LIMIT $4
