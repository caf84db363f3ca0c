-- What can wake somebody in each stream of a Site, and whether the command that is due has expired by
-- the database's clock. $1 Site.
SELECT h.environment, h.last_seq, h.cancel_rev, coalesce(p.done_seq, 0), coalesce(p.generation, 1),
       coalesce((SELECT due.not_after <= clock_timestamp() FROM site_coordination.command due
                  WHERE due.site = $1 AND due.environment = h.environment
                    AND due.seq = p.done_seq + 1), false)
  FROM site_coordination.stream_head h
  LEFT JOIN site_coordination.stream_progress p USING (site, environment)
 WHERE h.site = $1
