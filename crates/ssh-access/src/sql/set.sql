-- A part of what is in force at a Site, in the order of users and key ids. $1 Site, $2 user and $3 key
-- id after which, $4 rows at the most.
SELECT unix_user, key_id, member_id, public_key, expires_at
  FROM ssh_access.site_key
 WHERE site = $1 AND (unix_user, key_id) > ($2, $3)
 ORDER BY unix_user, key_id
 LIMIT $4
