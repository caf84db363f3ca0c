-- One result: what `store_results.sql` does with a list of one, for half of the work. An end follows,
-- and before it the page after the command where one is asked for.
-- $1 Site, $2 environment; $3 to $5 are the page's as in `page.sql`, and nothing without it;
-- $6 generation, $7 session, $8 command id, $9 digest, $10 outcome, $11 body, $12 the output that
-- counts.
-- `moved` is the only guard: it moves the progress from the predecessor to the command, once, for its
-- writer. The rest is this statement's snapshot, which can be older than what `moved` met after a
-- lock wait; the caller runs the statement again where the two disagree.
-- Only a command up to the progress has an ending, so nothing is looked for above it.
-- No row for a command that the stream does not have.
WITH target AS MATERIALIZED (
    SELECT c.command_id, c.seq, p.done_seq, p.generation, p.session_id,
           $12 IS NULL
           OR coalesce((SELECT true FROM site_coordination.private_output o
                         WHERE o.site = $1 AND o.environment = $2 AND o.seq = c.seq
                           AND o.digest = $12), false) AS has_output,
           earlier.digest AS earlier_digest, earlier.outcome AS earlier_outcome,
           earlier.received_at AS earlier_received_at, void.voided_at
      FROM site_coordination.stream_progress p
     CROSS JOIN LATERAL (
           SELECT * FROM site_coordination.command WHERE command.command_id = $8 OFFSET 0
      ) c
      LEFT JOIN LATERAL (
           SELECT r.digest, r.outcome, r.received_at FROM site_coordination.command_result r
            WHERE r.site = $1 AND r.environment = $2 AND r.seq = c.seq AND c.seq <= p.done_seq
           OFFSET 0
      ) earlier ON true
      LEFT JOIN LATERAL (
           SELECT v.voided_at FROM site_coordination.command_void v
            WHERE v.site = $1 AND v.environment = $2 AND v.seq = c.seq AND c.seq <= p.done_seq
           OFFSET 0
      ) void ON true
     WHERE p.site = $1 AND p.environment = $2 AND c.site = $1 AND c.environment = $2
), moved AS (
    UPDATE site_coordination.stream_progress p
       SET done_seq = target.seq
      FROM target
     WHERE p.site = $1 AND p.environment = $2 AND p.done_seq = target.seq - 1
       AND p.generation = $6 AND p.session_id IS NOT DISTINCT FROM $7
       AND target.has_output
    RETURNING p.done_seq
), stored AS (
    INSERT INTO site_coordination.command_result
           (site, environment, seq, digest, outcome, generation, output_digest)
    SELECT $1, $2, done_seq, $9, $10, $6, $12 FROM moved
    RETURNING seq, received_at
), bodies AS (
    INSERT INTO site_coordination.result_body (site, environment, seq, body)
    SELECT $1, $2, done_seq, $11 FROM moved
)
