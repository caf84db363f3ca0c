-- Voids the commands of a stream that are due and expired, one after the other. $1 Site,
-- $2 environment. 64 at the most: so few that a long row of expired ones holds neither the other
-- stream nor a result up.
-- `moved` is the only guard: it moves the progress over them, once, from where it was read. A result
-- that came first, or another listener, leaves nothing to do here; the next look finds what is left.
-- The clock is the database's. The event's counter is touched last, so that nobody waits for the
-- rest of this.
WITH expired AS MATERIALIZED (
    SELECT done_seq, seq, command_id
      FROM (
          SELECT p.done_seq, c.seq, c.command_id,
                 bool_and(coalesce(c.not_after <= clock_timestamp(), false)) OVER (ORDER BY c.seq)
                     AS all_expired
            FROM site_coordination.stream_progress p
           CROSS JOIN LATERAL (
                 SELECT command.seq, command.command_id, command.not_after
                   FROM site_coordination.command
                  WHERE command.site = $1 AND command.environment = $2
                    AND command.seq > p.done_seq
                  ORDER BY command.seq
                  LIMIT 64
            ) c
           WHERE p.site = $1 AND p.environment = $2
      ) due
     WHERE all_expired
), moved AS (
    UPDATE site_coordination.stream_progress p
       SET done_seq = ends.last
      FROM (SELECT min(done_seq) AS done_seq, max(seq) AS last FROM expired) ends
     WHERE p.site = $1 AND p.environment = $2 AND p.done_seq = ends.done_seq
    RETURNING p.done_seq
), voided AS (
    INSERT INTO site_coordination.command_void (site, environment, seq, reason)
    SELECT $1, $2, expired.seq, 'expired' FROM moved, expired
    RETURNING seq
), counted AS (
    INSERT INTO site_coordination.event_counter (site, last_seq)
    SELECT $1, count(*) FROM voided HAVING count(*) > 0
    ON CONFLICT (site) DO UPDATE SET last_seq = event_counter.last_seq + excluded.last_seq
    RETURNING last_seq
), told AS (
    INSERT INTO site_coordination.event (site, seq, type, environment, subject, data)
    SELECT $1, counted.last_seq - (moved.done_seq - expired.seq), 'commands.command.voided', $2,
           expired.command_id,
           json_build_object('site', $1, 'environment', $2, 'seq', expired.seq,
                             'commandId', expired.command_id, 'reason', 'expired')::text
      FROM counted, moved, expired
)
SELECT count(*) FROM voided
