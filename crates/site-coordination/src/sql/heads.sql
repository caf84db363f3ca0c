-- What can wake somebody in each stream of a Site, in how many milliseconds by the database's clock the
-- command that is due expires, and the Site's last event: all that is looked at again and again, in
-- one statement. $1 Site.
-- Null where nothing expires; 0 or less where it has. An event is of a stream, so where there is no row
-- there is none.
SELECT h.environment, h.last_seq, h.cancel_rev, coalesce(p.done_seq, 0), coalesce(p.generation, 1),
       (SELECT ceil(extract(epoch FROM due.not_after - clock_timestamp()) * 1000)::bigint
          FROM site_coordination.command due
         WHERE due.site = $1 AND due.environment = h.environment AND due.seq = p.done_seq + 1),
       coalesce((SELECT e.last_seq FROM site_coordination.event_counter e WHERE e.site = $1), 0)
  FROM site_coordination.stream_head h
  LEFT JOIN site_coordination.stream_progress p USING (site, environment)
 WHERE h.site = $1
