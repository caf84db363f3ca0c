-- One command of a stream with its bodies. $1 Site, $2 environment, $3 command id. Looked up row by
-- row, as in `page_rows.sql`.
SELECT c.seq, c.command_id, c.producer_key, c.kind, c.run_id, c.not_after, c.digest, c.created_at,
       x.cancelled_at, v.reason, v.note, v.voided_at,
       r.outcome, r.digest, r.output_digest, r.received_at, cb.body, rb.body
  FROM (SELECT * FROM site_coordination.command WHERE command_id = $3 OFFSET 0) c
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_body
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) cb ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_cancel
        WHERE site = $1 AND environment = $2 AND seq BETWEEN c.seq AND c.seq
        ORDER BY seq
       OFFSET 0
  ) x ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_void
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) v ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_result
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) r ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.result_body
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) rb ON true
 WHERE c.site = $1 AND c.environment = $2
