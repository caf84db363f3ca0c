-- The head of the statement that reads a page: where it reads. `page_rows.sql` follows.
-- $1 Site, $2 environment, $3 commands at the most, $4 bytes of bodies at the most, $5 the last
-- cancel that the caller knows, $6 the sequence after which it asks.
-- A stream that does not exist is an empty one.
WITH cursor AS (
    SELECT $6 AS after, coalesce(p.done_seq, 0) AS done_seq,
           coalesce(p.generation, 1) AS generation, p.session_id
      FROM (VALUES (1)) always
      LEFT JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
), 
