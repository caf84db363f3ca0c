-- Results. An end follows, and before it the page after the last of them where one is asked for.
-- $1 Site, $2 environment; $3 to $5 are the page's as in `page.sql`, and nothing without it;
-- $6 generation, $7 session, then arrays of the same length: $8 command ids, $9 digests,
-- $10 outcomes, $11 bodies, $12 outputs that count.
-- It does what each result alone would do, in their order: `run` are those that follow the progress
-- one by one. `moved` is the only guard: it moves the progress from the predecessor of the first to
-- the last, once, for its writer. The rest is this statement's snapshot, which can be older than
-- what `moved` met after a lock wait; the caller runs the statement again where the two disagree.
-- Nothing here locks and then compares: that would set new progress beside old results.
-- Only a command up to the progress has an ending, so nothing is looked for above it.
-- No row for a command that the stream does not have.
WITH input AS MATERIALIZED (
    SELECT DISTINCT ON (command_id) *
      FROM unnest($8, $9, $10, $11, $12) WITH ORDINALITY
           AS t (command_id, digest, outcome, body, output, place)
     ORDER BY command_id, place
), target AS MATERIALIZED (
    SELECT input.place, input.digest, c.command_id, c.seq, p.done_seq, p.generation, p.session_id,
           p.generation = $6 AND p.session_id IS NOT DISTINCT FROM $7 AS is_writer,
           input.output IS NULL
           OR coalesce((SELECT true FROM site_coordination.private_output o
                         WHERE o.site = $1 AND o.environment = $2 AND o.seq = c.seq
                           AND o.digest = input.output), false) AS has_output,
           earlier.digest AS earlier_digest, earlier.outcome AS earlier_outcome,
           earlier.received_at AS earlier_received_at, void.voided_at
      FROM input
      JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
     CROSS JOIN LATERAL (
           SELECT * FROM site_coordination.command
            WHERE command.command_id = input.command_id
           OFFSET 0
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
     WHERE c.site = $1 AND c.environment = $2
), run AS MATERIALIZED (
    SELECT place, seq
      FROM (
          SELECT place, seq, bool_and(follows AND has_output) OVER (ORDER BY seq) AS fits
            FROM (
                SELECT place, seq, has_output,
                       seq = done_seq + row_number() OVER by_seq
                       AND place > lag(place, 1, 0::bigint) OVER by_seq AS follows
                  FROM target WHERE is_writer AND seq > done_seq
                WINDOW by_seq AS (ORDER BY seq)
            ) each
      ) judged
     WHERE fits
), moved AS (
    UPDATE site_coordination.stream_progress p
       SET done_seq = ends.last
      FROM (SELECT min(seq) AS first, max(seq) AS last FROM run) ends
     WHERE p.site = $1 AND p.environment = $2 AND p.done_seq = ends.first - 1
       AND p.generation = $6 AND p.session_id IS NOT DISTINCT FROM $7
    RETURNING p.done_seq
), stored AS (
    INSERT INTO site_coordination.command_result
           (site, environment, seq, digest, outcome, generation, output_digest)
    SELECT $1, $2, run.seq, input.digest, input.outcome, $6, input.output
      FROM moved, run JOIN input USING (place)
    RETURNING seq, received_at
), bodies AS (
    INSERT INTO site_coordination.result_body (site, environment, seq, body)
    SELECT $1, $2, run.seq, input.body FROM moved, run JOIN input USING (place)
)
