-- Ends the command that is due without a result, because an operator says so, and tells it.
-- $1 Site, $2 environment, $3 command id, $4 the operator's note.
-- `due` is the only guard, the same as that of a result: of both at once one gets through.
-- The rest of the row is this statement's snapshot, which can be older than what `due` met after
-- a lock wait; the caller runs the statement again where the two disagree.
-- The counter of events is touched last. Looked up row by row, as in `page_rows.sql`.
-- No row: the stream has no such command.
WITH target AS (
    SELECT c.seq
      FROM (SELECT * FROM site_coordination.command WHERE command_id = $3 OFFSET 0) c
     WHERE c.site = $1 AND c.environment = $2
), due AS (
    UPDATE site_coordination.stream_progress p
       SET done_seq = target.seq
      FROM target
     WHERE p.site = $1 AND p.environment = $2 AND p.done_seq = target.seq - 1
    RETURNING target.seq
), new AS (
    INSERT INTO site_coordination.command_void (site, environment, seq, reason, note)
    SELECT $1, $2, seq, 'operator', $4 FROM due
    RETURNING seq, reason, note, voided_at
), counted AS (
    INSERT INTO site_coordination.event_counter AS c (site, last_seq)
    SELECT $1, 1 FROM new
    ON CONFLICT (site) DO UPDATE SET last_seq = c.last_seq + 1
    RETURNING last_seq
), told AS (
    INSERT INTO site_coordination.event (site, seq, type, environment, subject, data)
    SELECT $1, counted.last_seq, 'commands.command.voided', $2, $3,
           json_build_object('site', $1::text, 'environment', $2::text, 'seq', new.seq,
                             'commandId', $3::text, 'reason', new.reason)::text
      FROM new, counted
)
SELECT target.seq, p.done_seq, result.seq IS NOT NULL,
       coalesce(new.reason, old.reason), coalesce(new.note, old.note),
       coalesce(new.voided_at, old.voided_at)
  FROM target
  JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
  LEFT JOIN new ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_void
        WHERE site = $1 AND environment = $2 AND seq = target.seq
       OFFSET 0
  ) old ON true
  LEFT JOIN LATERAL (
       SELECT * FROM site_coordination.command_result
        WHERE site = $1 AND environment = $2 AND seq = target.seq
       OFFSET 0
  ) result ON true
