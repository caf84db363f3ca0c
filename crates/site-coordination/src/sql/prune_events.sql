-- Deletes old events of a Site. $1 Site, $2 after, $3 rows at the most, $4 days since they occurred.
-- One that a relay of the Site has still to publish stays, and all after it.
-- How many went, and the last sequence.
WITH old AS (
    SELECT e.seq FROM site_coordination.event e
     WHERE e.site = $1 AND e.seq > $2
       AND e.occurred_at <= clock_timestamp() - make_interval(days => $4)
       AND e.seq <= coalesce((SELECT published_seq FROM site_coordination.event_relay
                               WHERE site = $1), 9223372036854775807)
     ORDER BY e.seq
     LIMIT $3
), gone AS (
    DELETE FROM site_coordination.event e USING old WHERE e.site = $1 AND e.seq = old.seq
    RETURNING e.seq
)
SELECT (SELECT count(*) FROM gone), max(seq) FROM old
