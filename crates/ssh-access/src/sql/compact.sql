-- Takes a feed's beginning away: changes that the agent has acknowledged and that are older than $3
-- seconds, and whatever is older than $4 seconds. $1 Site, $2 fence.
-- It stops before the first change that has to stay. So many at once; running it again goes on.
-- How many went. No row: the lease is lost.
WITH guard AS MATERIALIZED (
    SELECT site FROM ssh_access.propagator_lease
     WHERE site = $1 AND fence = $2 AND expires_at > clock_timestamp()
       FOR NO KEY UPDATE
), oldest AS MATERIALIZED (
    SELECT c.seq, c.chain_digest,
           c.created_at <= clock_timestamp() - make_interval(secs => $4)
           OR (c.created_at <= clock_timestamp() - make_interval(secs => $3)
               AND c.seq <= coalesce((SELECT seq FROM ssh_access.site_ack WHERE site = $1), 0))
               AS goes
      FROM guard,
           LATERAL (SELECT * FROM ssh_access.site_change WHERE site = $1 ORDER BY seq LIMIT 5000) c
), place AS (
    SELECT seq, chain_digest FROM oldest
     WHERE seq < coalesce((SELECT min(seq) FROM oldest WHERE NOT goes), 9223372036854775807)
     ORDER BY seq DESC
     LIMIT 1
), moved AS (
    UPDATE ssh_access.site_feed f
       SET floor = place.seq, floor_digest = place.chain_digest
      FROM place
     WHERE f.site = $1 AND f.floor < place.seq
    RETURNING f.floor
), gone AS (
    DELETE FROM ssh_access.site_change c USING oldest, moved
     WHERE c.site = $1 AND c.seq = oldest.seq AND oldest.seq <= moved.floor
    RETURNING c.seq
)
SELECT (SELECT count(*) FROM gone) FROM guard
