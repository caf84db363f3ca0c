-- Many commands of one stream. $1 Site, $2 environment, then arrays of the same length: $3 command
-- ids (each once), $4 producer's keys, $5 kinds, $6 Runs, $7 digests, $8 bodies, $9 not after; $10
-- commands without an ending at the most.
-- The chain is computed from the locked head (`head`), never inside the UPDATE: there it would
-- start again from the digest before a lock wait. A key that stands for another command leaves
-- nothing `fresh`, so that nothing is stored. `room` is empty where not all that are new fit; its
-- progress is read without a lock and can only have grown, as in enqueue.sql.
-- Not a row for each id: the stream does not exist yet, or it has not the room.
WITH RECURSIVE input AS (
    SELECT * FROM unnest($3, $4, $5, $6, $7, $8, $9)
        WITH ORDINALITY AS t (command_id, producer_key, kind, run_id, digest, body, not_after, place)
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
), room AS MATERIALIZED (
    SELECT head.* FROM head
     WHERE last_seq + (SELECT count(*) FROM fresh)
           <= $10 + (SELECT done_seq FROM site_coordination.stream_progress
                      WHERE site = $1 AND environment = $2)
), chain (n, digest) AS (
    SELECT 0::bigint, last_digest FROM room
    UNION ALL
    SELECT fresh.n, sha256(chain.digest || fresh.digest)
      FROM chain JOIN fresh ON fresh.n = chain.n + 1
), moved AS (
    UPDATE site_coordination.stream_head h
       SET last_seq = room.last_seq + final.n, last_digest = final.digest
      FROM room, (SELECT n, digest FROM chain ORDER BY n DESC LIMIT 1) final
     WHERE h.site = $1 AND h.environment = $2 AND final.n > 0
), new AS (
    INSERT INTO site_coordination.command
           (site, environment, seq, command_id, producer_key, kind, run_id, digest, chain_digest,
            not_after)
    SELECT $1, $2, room.last_seq + fresh.n, command_id, producer_key, kind, run_id, fresh.digest,
           chain.digest, not_after
      FROM room, fresh JOIN chain USING (n)
    RETURNING command_id, seq, digest, created_at
), bodies AS (
    INSERT INTO site_coordination.command_body (site, environment, seq, body)
    SELECT $1, $2, room.last_seq + fresh.n, fresh.body FROM room, fresh
)
SELECT command_id, seq, digest, created_at, true FROM new
UNION ALL
SELECT command_id, seq, digest, created_at, false FROM old
