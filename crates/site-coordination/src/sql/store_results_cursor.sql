-- Where the page after results begins: after the last of those at the front that have an ending.
cursor AS (
    SELECT seq AS after, coalesce((SELECT moved.done_seq FROM moved), done_seq) AS done_seq,
           generation, session_id
      FROM (
          SELECT place, target.seq, target.done_seq, target.generation, target.session_id,
                 bool_and(coalesce(run.seq IS NOT NULL OR target.earlier_digest = input.digest
                                   OR target.voided_at IS NOT NULL, false))
                     OVER (ORDER BY place) AS leads
            FROM input LEFT JOIN target USING (place) LEFT JOIN run USING (place)
      ) answered
     WHERE leads
     ORDER BY place DESC
     LIMIT 1
), 
