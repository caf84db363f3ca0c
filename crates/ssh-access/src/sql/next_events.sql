-- The events of a Site after one, in order. $1 Site, $2 after, $3 rows at the most.
SELECT seq, event_id::text, type, data, occurred_at
  FROM ssh_access.event
 WHERE site = $1 AND seq > $2
 ORDER BY seq
 LIMIT $3
