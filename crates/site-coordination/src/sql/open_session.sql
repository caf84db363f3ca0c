-- Takes a stream over. $1 Site, $2 environment, $3 the new session, $4 the generation that it
-- expects.
-- `taken` is the only guard: the generation grows from the expected one, once, for a session that
-- never was. The rest of the row is this statement's snapshot, which can be older than what `taken`
-- met after a lock wait; the caller runs the statement again where the two disagree.
-- The event's counter is touched last, so that nobody waits for the rest of this.
-- No row: the stream does not exist yet.
WITH taken AS (
    UPDATE site_coordination.stream_progress
       SET generation = generation + 1, session_id = $3
     WHERE site = $1 AND environment = $2 AND generation = $4
       AND NOT EXISTS (SELECT FROM site_coordination.session s
                        WHERE s.site = $1 AND s.environment = $2 AND s.session_id = $3)
    RETURNING generation
), superseded AS (
    UPDATE site_coordination.session
       SET superseded_at = clock_timestamp()
      FROM taken
     WHERE session.site = $1 AND session.environment = $2
       AND session.generation = taken.generation - 1
), opened AS (
    INSERT INTO site_coordination.session (site, environment, generation, session_id)
    SELECT $1, $2, generation, $3 FROM taken
    RETURNING generation
), counted AS (
    INSERT INTO site_coordination.event_counter (site, last_seq) SELECT $1, 1 FROM opened
    ON CONFLICT (site) DO UPDATE SET last_seq = event_counter.last_seq + 1
    RETURNING last_seq
), told AS (
    INSERT INTO site_coordination.event (site, seq, type, environment, subject, data)
    SELECT $1, last_seq, 'commands.session.opened', $2, $3,
           json_build_object('site', $1, 'environment', $2, 'generation', generation,
                             'sessionId', $3)::text
      FROM counted, opened
)
SELECT p.generation, p.session_id, opened.generation,
       EXISTS (SELECT FROM site_coordination.session s
                WHERE s.site = $1 AND s.environment = $2 AND s.session_id = $3)
  FROM site_coordination.stream_progress p
  LEFT JOIN opened ON true
 WHERE p.site = $1 AND p.environment = $2
