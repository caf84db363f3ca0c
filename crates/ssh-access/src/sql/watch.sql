-- How far the agent of a Site is, and what has to be told of that. $1 Site, $2 fence.
-- A removal is overdue where its time is over and the agent has not acknowledged it, or says that it
-- could not apply it. Removals are found by an index of their own, and those of the last ten thousand
-- changes are read once for all failures: what it costs does not grow with what is in force.
-- What was told last stands in the feed, so that each change of it is one event.
-- No row: the lease is lost.
WITH guard AS MATERIALIZED (
    SELECT site FROM ssh_access.propagator_lease
     WHERE site = $1 AND fence = $2 AND expires_at > clock_timestamp()
       FOR NO KEY UPDATE
), state AS MATERIALIZED (
    SELECT f.head, f.told_overdue, f.told_mismatch, a.seq, a.attested,
           coalesce(a.failing, 0) AS failing,
           extract(epoch FROM clock_timestamp() - a.acknowledged_at)::double precision AS age,
           (SELECT count(*)
              FROM (SELECT c.seq FROM ssh_access.site_change c
                     WHERE c.site = $1 AND c.seq > coalesce(a.seq, 0)
                       AND c.operation = 'remove' AND c.enforce_by <= clock_timestamp()
                     ORDER BY c.seq
                     LIMIT 10000) late)
           + (SELECT count(*)
                FROM json_to_recordset(a.failures::json) AS failed ("unixUser" text, "keyId" text)
               WHERE a.failing > 0
                 AND NOT EXISTS (SELECT FROM ssh_access.site_key k
                                  WHERE k.site = $1 AND k.unix_user = failed."unixUser"
                                    AND k.key_id = failed."keyId")
                 -- In the form that is read once and hashed: nothing in it is of an outer row.
                 AND (failed."unixUser", failed."keyId") NOT IN (
                     SELECT c.unix_user, c.key_id FROM ssh_access.site_change c
                      WHERE c.site = $1 AND c.operation = 'remove'
                        AND c.enforce_by > clock_timestamp()
                        AND c.seq > (SELECT head - 10000 FROM ssh_access.site_feed
                                      WHERE site = $1)))
           -- One that was told is so until it is acknowledged, also when it is gone from the feed.
           + CASE WHEN f.told_overdue AND coalesce(a.seq, 0) < f.floor THEN 1 ELSE 0 END AS overdue
      FROM guard
      JOIN ssh_access.site_feed f ON f.site = $1
      LEFT JOIN ssh_access.site_ack a ON a.site = $1
), news AS MATERIALIZED (
    SELECT type, data, row_number() OVER () AS n FROM (
        SELECT CASE WHEN overdue > 0 THEN 'ssh.removals.overdue' ELSE 'ssh.removals.enforced' END
                   AS type,
               json_build_object('site', $1::text, 'overdue', overdue, 'head', head,
                                 'acknowledged', coalesce(seq, 0))::text AS data
          FROM state WHERE told_overdue <> (overdue > 0)
        UNION ALL
        SELECT CASE WHEN attested = 'mismatch' THEN 'ssh.set.mismatched' ELSE 'ssh.set.matched' END,
               json_build_object('site', $1::text, 'head', head,
                                 'acknowledged', coalesce(seq, 0))::text
          FROM state WHERE told_mismatch <> coalesce(attested = 'mismatch', false)
    ) told
), noted AS (
    UPDATE ssh_access.site_feed f
       SET told_overdue = (state.overdue > 0),
           told_mismatch = coalesce(state.attested = 'mismatch', false)
      FROM state
     WHERE f.site = $1 AND EXISTS (SELECT FROM news)
), counted AS (
    INSERT INTO ssh_access.event_counter AS c (site, last_seq)
    SELECT $1, (SELECT count(*) FROM news) WHERE EXISTS (SELECT FROM news)
    ON CONFLICT (site) DO UPDATE SET last_seq = c.last_seq + excluded.last_seq
    RETURNING last_seq
), told AS (
    INSERT INTO ssh_access.event (site, seq, type, data)
    SELECT $1, counted.last_seq - (SELECT count(*) FROM news) + news.n, news.type, news.data
      FROM counted, news
)
SELECT head, seq, age, overdue, failing, attested,
       (SELECT floor(extract(epoch FROM clock_timestamp() - min(since)))::bigint
          FROM ssh_access.pending_member WHERE site = $1),
       (SELECT count(*) FROM news)
  FROM state
