-- A private output of the command that is due. $1 Site, $2 environment, $3 command id,
-- $4 generation, $5 session, $6 digest, $7 bytes, $8 outputs of a command at the most.
-- `due` is the guard: the stream's progress stays before this command, and its writer stays the same,
-- until the output is committed; many outputs share it. Of two that want the same place among the
-- outputs one violates private_output_slot_once and leaves nothing behind, and the caller runs it
-- again; so it does where `due` met another state than this statement's snapshot. Looked up row by
-- row, as in `page_rows.sql`.
-- No row: the stream has no such command.
WITH target AS (
    SELECT c.seq, c.run_id IS NOT NULL AS has_run
      FROM (SELECT * FROM site_coordination.command WHERE command_id = $3 OFFSET 0) c
     WHERE c.site = $1 AND c.environment = $2
), kept AS MATERIALIZED (
    SELECT o.digest, o.created_at
      FROM target CROSS JOIN LATERAL (
           SELECT digest, created_at FROM site_coordination.private_output
            WHERE site = $1 AND environment = $2 AND seq = target.seq
           OFFSET 0
      ) o
), due AS MATERIALIZED (
    SELECT target.seq
      FROM site_coordination.stream_progress p JOIN target ON p.done_seq = target.seq - 1
     WHERE p.site = $1 AND p.environment = $2
       AND p.generation = $4 AND p.session_id IS NOT DISTINCT FROM $5
       AND target.has_run
       AND NOT EXISTS (SELECT FROM kept WHERE kept.digest = $6)
       AND (SELECT count(*) FROM kept) < $8
       FOR SHARE OF p
), stored AS (
    INSERT INTO site_coordination.private_output (site, environment, seq, digest, slot, bytes)
    SELECT $1, $2, seq, $6, (SELECT count(*) FROM kept) + 1, $7 FROM due
    RETURNING created_at
)
SELECT target.seq, target.has_run, p.done_seq, p.generation, p.session_id, stored.created_at,
       (SELECT kept.created_at FROM kept WHERE kept.digest = $6), (SELECT count(*) FROM kept),
       (SELECT r.digest FROM site_coordination.command_result r
         WHERE r.site = $1 AND r.environment = $2 AND r.seq = target.seq),
       (SELECT v.voided_at FROM site_coordination.command_void v
         WHERE v.site = $1 AND v.environment = $2 AND v.seq = target.seq)
  FROM target
  JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
  LEFT JOIN stored ON true
