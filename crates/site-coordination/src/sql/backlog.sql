-- How many commands of a stream have no ending. $1 Site, $2 environment.
SELECT h.last_seq - p.done_seq
  FROM site_coordination.stream_head h JOIN site_coordination.stream_progress p
    ON p.site = $1 AND p.environment = $2
 WHERE h.site = $1 AND h.environment = $2
