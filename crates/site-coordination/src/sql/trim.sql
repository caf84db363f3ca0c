-- Moves the place up to which a stream may lose its bodies, over commands that ended long ago.
-- $1 Site, $2 environment, $3 days since the ending, $4 commands at the most.
-- It stops before the first command that ended later or has no ending. It deletes nothing: first
-- every poll is told, then the bodies go.
-- No row: there is nothing to move over.
WITH head AS (
    SELECT h.trimmed_seq, p.done_seq
      FROM site_coordination.stream_head h
      JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
     WHERE h.site = $1 AND h.environment = $2
), next AS MATERIALIZED (
    SELECT c.seq, coalesce(
               (SELECT r.received_at FROM site_coordination.command_result r
                 WHERE r.site = $1 AND r.environment = $2 AND r.seq = c.seq),
               (SELECT v.voided_at FROM site_coordination.command_void v
                 WHERE v.site = $1 AND v.environment = $2 AND v.seq = c.seq)) AS ended_at
      FROM head JOIN site_coordination.command c
        ON c.site = $1 AND c.environment = $2 AND c.seq > head.trimmed_seq
       AND c.seq <= least(head.done_seq, head.trimmed_seq + $4)
), place AS (
    SELECT coalesce(min(seq) FILTER (WHERE ended_at IS NULL OR
                        ended_at > clock_timestamp() - make_interval(days => $3)) - 1,
                    max(seq)) AS seq
      FROM next
)
UPDATE site_coordination.stream_head h
   SET trimmed_seq = place.seq
  FROM place
 WHERE h.site = $1 AND h.environment = $2 AND h.trimmed_seq < place.seq
RETURNING h.trimmed_seq
