-- The private output of a Run: that which the newest result of its commands names. $1 Site,
-- $2 environment, $3 Run. Looked up row by row, as in `page_rows.sql`; a Run has few commands.
-- No row: no result of a command of the Run names one, or it was deleted by age.
SELECT c.seq, c.command_id, r.output_digest, o.length, o.created_at
  FROM (SELECT * FROM site_coordination.command WHERE run_id = $3 OFFSET 0) c
 CROSS JOIN LATERAL (
       SELECT output_digest FROM site_coordination.command_result
        WHERE site = $1 AND environment = $2 AND seq = c.seq
       OFFSET 0
  ) r
 CROSS JOIN LATERAL (
       SELECT octet_length(bytes)::bigint AS length, created_at
         FROM site_coordination.private_output
        WHERE site = $1 AND environment = $2 AND seq = c.seq AND digest = r.output_digest
       OFFSET 0
  ) o
 WHERE c.site = $1 AND c.environment = $2
 ORDER BY c.seq DESC
 LIMIT 1
