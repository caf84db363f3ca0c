-- Which members of a Site have to be looked at, and where its feed is. $1 Site, $2 members at the most.
-- A member whose key has expired is one of them; it has no change that could be noted as done.
-- One row with a null member: nothing is due. No row: the Site has no feed.
SELECT f.head, f.head_digest, f.window_seconds, due.member_id, due.last_change
  FROM ssh_access.site_feed f
  LEFT JOIN LATERAL (
       (SELECT member_id, last_change
          FROM (SELECT * FROM ssh_access.pending_member
                 WHERE site = $1 ORDER BY since LIMIT 1000) oldest
         ORDER BY since
         LIMIT $2)
       UNION ALL
       (SELECT DISTINCT member_id, NULL::bigint
          FROM (SELECT member_id FROM ssh_access.site_key
                 WHERE site = $1 AND expires_at IS NOT NULL AND expires_at <= clock_timestamp()
                 ORDER BY expires_at LIMIT 100) expired)
  ) due ON true
 WHERE f.site = $1
