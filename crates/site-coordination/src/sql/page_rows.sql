-- The commands after a sequence, and the state of the stream in the same snapshot: part of the
-- statements that read a page. $1 to $5 as in `page.sql`; `cursor` has one row at the most and says
-- after which sequence, how far the stream is done, and whose it is.
-- One row with null command columns: nothing is there.
-- Everything is looked up row by row: a join would read from the stream's beginning. The constant
-- limit below that of the caller tells the planner what a page costs; nobody asks for more.
-- Where two indexes begin with the stream, as those of cancels and of sessions do, an order by the place
-- says which one is meant: over an empty table both seem to cost the same, and one reads the stream.
-- The cancels are found by place, not by their count: so many are open at the most as commands are.
-- Their upper bound always holds; it tells the planner that the range is short.
page AS (
    SELECT state.last_seq, state.done_seq, state.generation, state.session_id, state.cancel_rev,
           state.trimmed_seq, state.trimmed_digest, state.after, state.chain_digest, state.due_age,
           state.read_at,
           -- On the first row only.
           CASE WHEN c.seq IS NULL OR c.seq - 1 = state.after THEN open.revs END AS cancel_revs,
           CASE WHEN c.seq IS NULL OR c.seq - 1 = state.after THEN open.ids END AS cancel_ids,
           CASE WHEN c.seq IS NULL OR c.seq - 1 = state.after THEN open.seqs END AS cancel_seqs,
           c.seq, c.command_id, c.kind, c.run_id, c.not_after, c.digest,
           c.chain_digest AS own_chain_digest, c.created_at, c.voided, c.body
      FROM (
           -- Looked up once, not for each row.
           SELECT coalesce(h.last_seq, 0) AS last_seq, cursor.done_seq, cursor.generation,
                  cursor.session_id, coalesce(h.cancel_rev, 0) AS cancel_rev,
                  coalesce(h.trimmed_seq, 0) AS trimmed_seq,
                  (SELECT at.chain_digest FROM site_coordination.command at
                    WHERE at.site = $1 AND at.environment = $2 AND at.seq = h.trimmed_seq
                      AND h.trimmed_seq > 0) AS trimmed_digest,
                  cursor.after,
                  (SELECT here.chain_digest FROM site_coordination.command here
                    WHERE here.site = $1 AND here.environment = $2 AND here.seq = cursor.after)
                      AS chain_digest,
                  (SELECT floor(extract(epoch FROM clock_timestamp() - due.created_at))::bigint
                     FROM site_coordination.command due
                    WHERE due.site = $1 AND due.environment = $2
                      AND due.seq = cursor.done_seq + 1) AS due_age,
                  clock_timestamp() AS read_at
             FROM cursor
             LEFT JOIN site_coordination.stream_head h ON h.site = $1 AND h.environment = $2
           OFFSET 0
      ) state
      LEFT JOIN LATERAL (
           SELECT array_agg(cancel_rev ORDER BY cancel_rev) AS revs,
                  array_agg(command_id ORDER BY cancel_rev) AS ids,
                  array_agg(seq ORDER BY cancel_rev) AS seqs
             FROM (
                 SELECT mark.cancel_rev, mark.seq,
                        (SELECT command_id FROM site_coordination.command
                          WHERE command.site = $1 AND command.environment = $2
                            AND command.seq = mark.seq) AS command_id
                   FROM (SELECT * FROM site_coordination.command_cancel
                          WHERE command_cancel.site = $1 AND command_cancel.environment = $2
                            AND command_cancel.seq > state.done_seq
                            AND command_cancel.seq <= state.last_seq
                          ORDER BY command_cancel.seq
                         OFFSET 0) mark
                  WHERE state.cancel_rev > $5 AND mark.cancel_rev > $5
                  ORDER BY mark.cancel_rev
                  LIMIT 256
             ) listed
      ) open ON true
      LEFT JOIN LATERAL (
           SELECT * FROM (
               SELECT part.*, sum(octet_length(part.body)) OVER (ORDER BY part.seq) AS bytes
                 FROM (
                     SELECT place.*,
                            place.seq <= state.done_seq
                            AND coalesce((SELECT true FROM site_coordination.command_void v
                                           WHERE v.site = $1 AND v.environment = $2
                                             AND v.seq = place.seq), false) AS voided,
                            (SELECT b.body FROM site_coordination.command_body b
                              WHERE b.site = $1 AND b.environment = $2
                                AND b.seq = place.seq) AS body
                       FROM (SELECT * FROM site_coordination.command
                              WHERE command.site = $1 AND command.environment = $2
                                AND command.seq > state.after
                              ORDER BY command.seq
                              LIMIT 1000) place
                      ORDER BY place.seq
                      LIMIT $3
                 ) part
           ) measured
            WHERE body IS NOT NULL AND (bytes <= $4 OR seq - 1 = state.after)
      ) c ON true
)
