-- How a command ended. $1 Site, $2 environment, $3 command id.
-- Null columns: it has not yet. No row: the stream has no such command.
SELECT r.outcome, r.digest, r.output_digest, r.received_at, b.body,
       v.reason, v.note, v.voided_at
  FROM site_coordination.command c
  LEFT JOIN site_coordination.command_result r USING (site, environment, seq)
  LEFT JOIN site_coordination.result_body b USING (site, environment, seq)
  LEFT JOIN site_coordination.command_void v USING (site, environment, seq)
 WHERE c.site = $1 AND c.environment = $2 AND c.command_id = $3
