-- Many commands of one stream. $1 Site, $2 environment, then arrays of the same length: $3 command
-- ids (each once), $4 producer's keys, $5 kinds, $6 Runs, $7 digests, $8 bodies.
-- The chain is computed from the locked head (`head`), never inside the UPDATE: there it would
-- start again from the digest before a lock wait. A key that stands for another command leaves
-- nothing `fresh`, so that nothing is stored. No row at all: the stream does not exist yet.
WITH RECURSIVE input AS (
    SELECT * FROM unnest($3, $4, $5, $6, $7, $8)
        WITH ORDINALITY AS t (command_id, producer_key, kind, run_id, digest, body, place)
), old AS (
    SELECT c.command_id, c.seq, c.digest, c.created_at
      FROM site_coordination.command c WHERE c.command_id = ANY ($3)
), fresh AS MATERIALIZED (
    SELECT input.*, row_number() OVER (ORDER BY place) AS n
      FROM input WHERE NOT EXISTS (SELECT FROM old WHERE old.command_id = input.command_id)
       AND NOT EXISTS (SELECT FROM input JOIN old USING (command_id)
                        WHERE old.digest <> input.digest)
), head AS MATERIALIZED (
    SELECT last_seq, last_digest FROM site_coordination.stream_head
     WHERE site = $1 AND environment = $2
       FOR NO KEY UPDATE
), chain (n, digest) AS (
    SELECT 0::bigint, last_digest FROM head
    UNION ALL
    SELECT fresh.n, sha256(chain.digest || fresh.digest)
      FROM chain JOIN fresh ON fresh.n = chain.n + 1
), moved AS (
    UPDATE site_coordination.stream_head h
       SET last_seq = head.last_seq + final.n, last_digest = final.digest
      FROM head, (SELECT n, digest FROM chain ORDER BY n DESC LIMIT 1) final
     WHERE h.site = $1 AND h.environment = $2 AND final.n > 0
), new AS (
    INSERT INTO site_coordination.command
           (site, environment, seq, command_id, producer_key, kind, run_id, digest, chain_digest)
    SELECT $1, $2, head.last_seq + fresh.n, command_id, producer_key, kind, run_id, fresh.digest,
           chain.digest
      FROM head, fresh JOIN chain USING (n)
    RETURNING command_id, seq, digest, created_at
), bodies AS (
    INSERT INTO site_coordination.command_body (site, environment, seq, body)
    SELECT $1, $2, head.last_seq + fresh.n, fresh.body FROM head, fresh
)
SELECT command_id, seq, digest, created_at, true FROM new
UNION ALL
SELECT command_id, seq, digest, created_at, false FROM old
