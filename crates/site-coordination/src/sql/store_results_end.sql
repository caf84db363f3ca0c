-- The end of `store_results.sql` and `store_result.sql` with a page: a row for each command, then those of the page.
SELECT target.command_id, target.seq, target.done_seq, target.generation, target.session_id,
       stored.received_at, target.earlier_digest, target.earlier_outcome,
       target.earlier_received_at, target.voided_at, target.has_output, page.*
  FROM (target LEFT JOIN stored USING (seq)) FULL JOIN page ON false
 ORDER BY page.seq
