-- Deletes events of a Site that are older than $3 seconds. $1 Site, $2 fence.
-- One that a relay of the Site has still to publish stays, and all after it. So many at once; running
-- it again goes on.
-- How many went. No row: the lease is lost.
WITH guard AS MATERIALIZED (
    SELECT site FROM ssh_access.propagator_lease
     WHERE site = $1 AND fence = $2 AND expires_at > clock_timestamp()
       FOR NO KEY UPDATE
), oldest AS MATERIALIZED (
    SELECT e.seq,
           e.occurred_at <= clock_timestamp() - make_interval(secs => $3)
           AND e.seq <= coalesce((SELECT published_seq FROM ssh_access.event_relay
                                   WHERE site = $1), 9223372036854775807) AS goes
      FROM guard,
           LATERAL (SELECT * FROM ssh_access.event WHERE site = $1 ORDER BY seq LIMIT 1000) e
), gone AS (
    DELETE FROM ssh_access.event e USING oldest
     WHERE e.site = $1 AND e.seq = oldest.seq
       AND oldest.seq < coalesce((SELECT min(seq) FROM oldest WHERE NOT goes), 9223372036854775807)
    RETURNING e.seq
)
SELECT (SELECT count(*) FROM gone) FROM guard
