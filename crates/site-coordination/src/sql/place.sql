-- Where a Runtime that opens a session goes on. $1 Site, $2 environment.
SELECT p.done_seq, done.chain_digest, h.last_seq, clock_timestamp()
  FROM site_coordination.stream_progress p
  JOIN site_coordination.stream_head h USING (site, environment)
  LEFT JOIN site_coordination.command done
    ON done.site = $1 AND done.environment = $2 AND done.seq = p.done_seq
 WHERE p.site = $1 AND p.environment = $2
