-- Deletes bodies of commands up to the trimmed place. $1 Site, $2 environment, $3 after, $4 rows at
-- the most. How many went, and the last sequence: another keeper may have been quicker.
WITH old AS (
    SELECT b.seq FROM site_coordination.command_body b
     WHERE b.site = $1 AND b.environment = $2 AND b.seq > $3
       AND b.seq <= (SELECT trimmed_seq FROM site_coordination.stream_head
                      WHERE site = $1 AND environment = $2)
     ORDER BY b.seq
     LIMIT $4
), gone AS (
    DELETE FROM site_coordination.command_body b USING old
     WHERE b.site = $1 AND b.environment = $2 AND b.seq = old.seq
    RETURNING b.seq
)
SELECT (SELECT count(*) FROM gone), max(seq) FROM old
