-- How a command ended. $1 Site, $2 environment, $3 command id. Looked up row by row, as in
-- `page_rows.sql`.
-- Null columns: it has not yet. No row: the stream has no such command.
SELECT r.outcome, r.digest, r.output_digest, r.received_at, b.body,
       v.reason, v.note, v.voided_at
  FROM (SELECT * FROM site_coordination.command WHERE command_id = $3 OFFSET 0) c
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_result
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) r ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.result_body
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) b ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_void
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) v ON true
 WHERE c.site = $1 AND c.environment = $2
