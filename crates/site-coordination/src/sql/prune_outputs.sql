-- Deletes private outputs of commands up to the trimmed place, those of a command together.
-- $1 Site, $2 environment, $3 after, $4 commands at the most. How many outputs went, and the
-- sequence of the last command.
WITH old AS (
    SELECT DISTINCT o.seq FROM site_coordination.private_output o
     WHERE o.site = $1 AND o.environment = $2 AND o.seq > $3
       AND o.seq <= (SELECT trimmed_seq FROM site_coordination.stream_head
                      WHERE site = $1 AND environment = $2)
     ORDER BY o.seq
     LIMIT $4
), gone AS (
    DELETE FROM site_coordination.private_output o USING old
     WHERE o.site = $1 AND o.environment = $2 AND o.seq = old.seq
    RETURNING o.seq
)
SELECT (SELECT count(*) FROM gone), max(seq) FROM old
