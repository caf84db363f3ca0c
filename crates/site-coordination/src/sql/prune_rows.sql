-- Deletes commands, with their receipts and marks, that ended long ago and have no bodies any more.
-- $1 Site, $2 environment, $3 after, $4 commands at the most, $5 days since the ending.
-- Only before the trimmed place: the row there stays, so that the chain of digests goes on. It
-- stops before the first one that must stay, so that what is left has no gap.
-- How many commands went, and the last sequence.
WITH next AS MATERIALIZED (
    SELECT c.seq,
           coalesce((SELECT r.received_at FROM site_coordination.command_result r
                      WHERE r.site = $1 AND r.environment = $2 AND r.seq = c.seq),
                    (SELECT v.voided_at FROM site_coordination.command_void v
                      WHERE v.site = $1 AND v.environment = $2 AND v.seq = c.seq)) AS ended_at,
           EXISTS (SELECT FROM site_coordination.command_body b
                    WHERE b.site = $1 AND b.environment = $2 AND b.seq = c.seq)
        OR EXISTS (SELECT FROM site_coordination.result_body b
                    WHERE b.site = $1 AND b.environment = $2 AND b.seq = c.seq)
        OR EXISTS (SELECT FROM site_coordination.private_output o
                    WHERE o.site = $1 AND o.environment = $2 AND o.seq = c.seq) AS has_body
      FROM site_coordination.command c
     WHERE c.site = $1 AND c.environment = $2 AND c.seq > $3
       AND c.seq < (SELECT trimmed_seq FROM site_coordination.stream_head
                     WHERE site = $1 AND environment = $2)
     ORDER BY c.seq
     LIMIT $4
), old AS MATERIALIZED (
    SELECT seq FROM next
     WHERE seq < coalesce(
               (SELECT min(seq) FROM next
                 WHERE has_body OR ended_at IS NULL
                    OR ended_at > clock_timestamp() - make_interval(days => $5)),
               9223372036854775807)
), results AS (
    DELETE FROM site_coordination.command_result r USING old
     WHERE r.site = $1 AND r.environment = $2 AND r.seq = old.seq
), voids AS (
    DELETE FROM site_coordination.command_void v USING old
     WHERE v.site = $1 AND v.environment = $2 AND v.seq = old.seq
), cancels AS (
    DELETE FROM site_coordination.command_cancel x USING old
     WHERE x.site = $1 AND x.environment = $2 AND x.seq = old.seq
), commands AS (
    DELETE FROM site_coordination.command c USING old
     WHERE c.site = $1 AND c.environment = $2 AND c.seq = old.seq
    RETURNING c.seq
)
SELECT (SELECT count(*) FROM commands), max(seq) FROM old
