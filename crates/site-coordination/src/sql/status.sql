-- The state of each stream of a Site, or of all Sites where $1 is null. Looked up row by row, as in
-- `page_rows.sql`.
SELECT h.site, h.environment, h.last_seq, p.done_seq, p.generation, h.cancel_rev, h.trimmed_seq,
       floor(extract(epoch FROM clock_timestamp() - due.created_at))::bigint,
       s.session_id, s.opened_at
  FROM site_coordination.stream_head h
  JOIN site_coordination.stream_progress p USING (site, environment)
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command
        WHERE site = h.site AND environment = h.environment AND seq = p.done_seq + 1
       OFFSET 0
  ) due ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.session
        WHERE site = h.site AND environment = h.environment
          AND generation BETWEEN p.generation AND p.generation
        ORDER BY generation
       OFFSET 0
  ) s ON true
 WHERE $1 IS NULL OR h.site = $1
 ORDER BY h.site, h.environment
