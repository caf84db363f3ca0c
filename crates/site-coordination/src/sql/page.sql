-- The commands after a sequence, and the state of the stream in the same snapshot.
-- $1 Site, $2 environment, $3 the sequence, $4 rows at the most, $5 bytes of bodies at the most
-- (the first command comes whatever its size). A stream that does not exist is an empty one.
-- One row with null command columns: nothing is there.
-- The bodies are looked up one by one: a join would read them from the stream's beginning.
SELECT coalesce(h.last_seq, 0), coalesce(p.done_seq, 0), coalesce(p.generation, 1),
       here.chain_digest,
       floor(extract(epoch FROM clock_timestamp() - due.created_at))::bigint, clock_timestamp(),
       c.seq, c.command_id, c.kind, c.run_id, c.digest, c.chain_digest, c.created_at, c.body
  FROM (VALUES (1)) always
  LEFT JOIN site_coordination.stream_head h ON h.site = $1 AND h.environment = $2
  LEFT JOIN site_coordination.stream_progress p ON p.site = $1 AND p.environment = $2
  LEFT JOIN site_coordination.command here
    ON here.site = $1 AND here.environment = $2 AND here.seq = $3
  LEFT JOIN site_coordination.command due
    ON due.site = $1 AND due.environment = $2 AND due.seq = coalesce(p.done_seq, 0) + 1
  LEFT JOIN LATERAL (
       SELECT * FROM (
           SELECT part.*, sum(octet_length(part.body)) OVER (ORDER BY part.seq) AS bytes
             FROM (
                 SELECT command.*, (SELECT b.body FROM site_coordination.command_body b
                                     WHERE b.site = $1 AND b.environment = $2
                                       AND b.seq = command.seq) AS body
                   FROM site_coordination.command
                  WHERE command.site = $1 AND command.environment = $2 AND command.seq > $3
                  ORDER BY command.seq
                  LIMIT $4
             ) part
       ) measured
        WHERE body IS NOT NULL AND (bytes <= $5 OR seq - 1 = $3)
  ) c ON true
 ORDER BY c.seq
