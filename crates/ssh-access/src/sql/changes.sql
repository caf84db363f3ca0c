-- The changes of a Site after a sequence, in order. $1 Site, $2 after, $3 rows at the most.
-- The constant limit tells the planner what a page costs; nobody asks for more.
SELECT seq, operation, unix_user, key_id, member_id, public_key, expires_at, enforce_by, digest,
       chain_digest
  FROM (SELECT * FROM ssh_access.site_change
         WHERE site = $1 AND seq > $2
         ORDER BY seq
         LIMIT 1000) page
 ORDER BY seq
 LIMIT $3
