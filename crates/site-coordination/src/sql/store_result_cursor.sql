-- Where the page after a list of one result begins: after its command, where that has this result or
-- was voided.
cursor AS (
    SELECT target.seq AS after, coalesce(moved.done_seq, target.done_seq) AS done_seq,
           target.generation, target.session_id
      FROM target LEFT JOIN moved ON true
     WHERE moved.done_seq IS NOT NULL OR target.earlier_digest = $9
        OR target.voided_at IS NOT NULL
), 
