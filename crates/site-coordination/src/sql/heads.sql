-- What can wake somebody in each stream of a Site. $1 Site.
SELECT h.environment, h.last_seq, h.cancel_rev, coalesce(p.done_seq, 0), coalesce(p.generation, 1)
  FROM site_coordination.stream_head h
  LEFT JOIN site_coordination.stream_progress p USING (site, environment)
 WHERE h.site = $1
