-- Commands of a stream with the state of each. $1 Site, $2 environment, $3 after, $4 rows at most.
SELECT c.seq, c.command_id, c.producer_key, c.kind, c.run_id, c.not_after, c.digest, c.created_at,
       x.cancelled_at, v.reason, v.note, v.voided_at,
       r.outcome, r.digest, r.output_digest, r.received_at
  FROM site_coordination.command c
  LEFT JOIN site_coordination.command_cancel x
    ON x.site = $1 AND x.environment = $2 AND x.seq = c.seq AND x.seq > $3
  LEFT JOIN site_coordination.command_void v
    ON v.site = $1 AND v.environment = $2 AND v.seq = c.seq AND v.seq > $3
  LEFT JOIN site_coordination.command_result r
    ON r.site = $1 AND r.environment = $2 AND r.seq = c.seq AND r.seq > $3
 WHERE c.site = $1 AND c.environment = $2 AND c.seq > $3
 ORDER BY c.seq
 LIMIT $4
