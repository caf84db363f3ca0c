-- Marks a command as cancelled, and tells it. $1 Site, $2 environment, $3 command id.
-- Of two callers with one command the second violates command_cancel_pkey and leaves nothing
-- behind; it then reads the first one's mark. A command that ends at this moment may still be
-- marked: nobody shows a mark of a command that has an ending.
-- The counter of events is touched last. Looked up row by row, as in `page_rows.sql`.
-- Null marks: the command has an ending. No row: the stream has no such command.
WITH target AS (
    SELECT c.seq, p.done_seq, x.cancel_rev, x.cancelled_at
      FROM (SELECT * FROM site_coordination.command WHERE command_id = $3 OFFSET 0) c
      JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
      LEFT JOIN LATERAL (
           SELECT * FROM site_coordination.command_cancel
            WHERE site = $1 AND environment = $2 AND seq BETWEEN c.seq AND c.seq
            ORDER BY seq
           OFFSET 0
      ) x ON true
     WHERE c.site = $1 AND c.environment = $2
), head AS (
    UPDATE site_coordination.stream_head h
       SET cancel_rev = h.cancel_rev + 1
      FROM target
     WHERE h.site = $1 AND h.environment = $2
       AND target.cancel_rev IS NULL AND target.seq > target.done_seq
    RETURNING target.seq, h.cancel_rev
), new AS (
    INSERT INTO site_coordination.command_cancel (site, environment, seq, cancel_rev)
    SELECT $1, $2, seq, cancel_rev FROM head
    RETURNING seq, cancel_rev, cancelled_at
), counted AS (
    INSERT INTO site_coordination.event_counter AS c (site, last_seq)
    SELECT $1, 1 FROM new
    ON CONFLICT (site) DO UPDATE SET last_seq = c.last_seq + 1
    RETURNING last_seq
), told AS (
    INSERT INTO site_coordination.event (site, seq, type, environment, subject, data)
    SELECT $1, counted.last_seq, 'commands.command.cancelled', $2, $3,
           json_build_object('site', $1::text, 'environment', $2::text, 'seq', new.seq,
                             'commandId', $3::text, 'cancelRev', new.cancel_rev)::text
      FROM new, counted
)
SELECT coalesce(new.cancel_rev, target.cancel_rev), coalesce(new.cancelled_at, target.cancelled_at),
       new.seq IS NOT NULL
  FROM target LEFT JOIN new ON true
