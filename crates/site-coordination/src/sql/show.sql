-- One command of a stream with its bodies. $1 Site, $2 environment, $3 command id.
SELECT c.seq, c.command_id, c.producer_key, c.kind, c.run_id, c.not_after, c.digest, c.created_at,
       x.cancelled_at, v.reason, v.note, v.voided_at,
       r.outcome, r.digest, r.output_digest, r.received_at, cb.body, rb.body
  FROM site_coordination.command c
  LEFT JOIN site_coordination.command_body cb USING (site, environment, seq)
  LEFT JOIN site_coordination.command_cancel x USING (site, environment, seq)
  LEFT JOIN site_coordination.command_void v USING (site, environment, seq)
  LEFT JOIN site_coordination.command_result r USING (site, environment, seq)
  LEFT JOIN site_coordination.result_body rb USING (site, environment, seq)
 WHERE c.site = $1 AND c.environment = $2 AND c.command_id = $3
