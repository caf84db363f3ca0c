-- Where a Runtime that opens a session goes on. $1 Site, $2 environment. Looked up row by row, as in
-- `page_rows.sql`.
SELECT p.done_seq, done.chain_digest, h.last_seq, clock_timestamp()
  FROM site_coordination.stream_progress p
  JOIN site_coordination.stream_head h USING (site, environment)
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command
        WHERE site = $1 AND environment = $2 AND seq = p.done_seq
       OFFSET 0
  ) done ON true
 WHERE p.site = $1 AND p.environment = $2
