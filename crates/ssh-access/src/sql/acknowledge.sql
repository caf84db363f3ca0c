-- Stores what the agent of a Site has made durable. $1 Site, $2 sequence, $3 chain digest there,
-- $4 what the comparison of its set gave, or null, $5 how many failures, $6 the failures.
-- It moves forward only; at the same place it replaces. Whether the place is one of the feed is looked
-- up here as well: a feed that was restored in between has another.
-- The stored place, where there is one; whether this was stored; the digest of the feed there as in
-- state.sql; head and floor, and the time.
WITH place AS MATERIALIZED (
    SELECT coalesce(f.head, 0) AS head,
           coalesce(f.head_digest, decode(repeat('00', 32), 'hex')) AS head_digest,
           coalesce(f.floor, 0) AS floor,
           CASE WHEN $2 = 0 THEN decode(repeat('00', 32), 'hex')
                WHEN $2 = f.head THEN f.head_digest
                WHEN $2 = f.floor THEN f.floor_digest
                ELSE (SELECT chain_digest FROM ssh_access.site_change
                       WHERE site = $1 AND seq = $2)
           END AS digest
      FROM (VALUES (1)) always
      LEFT JOIN ssh_access.site_feed f ON f.site = $1
), stored AS (
    INSERT INTO ssh_access.site_ack AS a
           (site, seq, chain_digest, attested, attested_at, failing, failures)
    SELECT $1, $2, $3, $4, CASE WHEN $4 IS NOT NULL THEN clock_timestamp() END, $5, $6
      FROM place WHERE place.digest = $3
    ON CONFLICT (site) DO UPDATE
       SET seq = excluded.seq, chain_digest = excluded.chain_digest,
           acknowledged_at = clock_timestamp(),
           attested = coalesce(excluded.attested, a.attested),
           attested_at = coalesce(excluded.attested_at, a.attested_at),
           failing = excluded.failing, failures = excluded.failures
     WHERE a.seq <= excluded.seq
    RETURNING seq, chain_digest
)
SELECT coalesce(stored.seq, before.seq), coalesce(stored.chain_digest, before.chain_digest),
       stored.seq IS NOT NULL, place.digest, place.head, place.head_digest, place.floor,
       transaction_timestamp()
  FROM place
  LEFT JOIN stored ON true
  LEFT JOIN ssh_access.site_ack before ON before.site = $1
