-- The state of each stream of a Site, or of all Sites where $1 is null.
SELECT h.site, h.environment, h.last_seq, p.done_seq, p.generation, h.cancel_rev, h.trimmed_seq,
       floor(extract(epoch FROM clock_timestamp() - due.created_at))::bigint,
       s.session_id, s.opened_at
  FROM site_coordination.stream_head h
  JOIN site_coordination.stream_progress p USING (site, environment)
  LEFT JOIN site_coordination.command due
    ON due.site = h.site AND due.environment = h.environment AND due.seq = p.done_seq + 1
  LEFT JOIN site_coordination.session s
    ON s.site = h.site AND s.environment = h.environment AND s.generation = p.generation
 WHERE $1 IS NULL OR h.site = $1
 ORDER BY h.site, h.environment
