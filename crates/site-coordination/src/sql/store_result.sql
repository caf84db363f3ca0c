-- The result of one command. $1 Site, $2 environment, $3 command id, $4 generation, $5 digest,
-- $6 outcome, $7 body, $8 session.
-- `due` is the only guard: it moves the progress from the predecessor to this command, once.
-- The rest of the row is this statement's snapshot, which can be older than what `due` met after
-- a lock wait; the caller runs the statement again where the two disagree.
-- No row: the stream has no such command.
WITH target AS (
    SELECT seq FROM site_coordination.command
     WHERE command_id = $3 AND site = $1 AND environment = $2
), due AS (
    UPDATE site_coordination.stream_progress p
       SET done_seq = target.seq
      FROM target
     WHERE p.site = $1 AND p.environment = $2
       AND p.done_seq = target.seq - 1
       AND p.generation = $4 AND p.session_id IS NOT DISTINCT FROM $8
    RETURNING target.seq
), stored AS (
    INSERT INTO site_coordination.command_result
           (site, environment, seq, digest, outcome, generation)
    SELECT $1, $2, seq, $5, $6, $4 FROM due
    RETURNING received_at
), body AS (
    INSERT INTO site_coordination.result_body (site, environment, seq, body)
    SELECT $1, $2, seq, $7 FROM due
)
SELECT target.seq, p.done_seq, p.generation, p.session_id, stored.received_at,
       earlier.digest, earlier.outcome, earlier.received_at
  FROM target
  JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
  LEFT JOIN stored ON true
  LEFT JOIN site_coordination.command_result earlier
    ON earlier.site = $1 AND earlier.environment = $2 AND earlier.seq = target.seq
