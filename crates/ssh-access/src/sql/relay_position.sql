-- The last event of a Site that was published. $1 Site.
-- A relay that asks for the first time is noted here, at the event before the oldest that is left:
-- from then on retention leaves what it has still to publish.
-- No row: the Site had no event yet.
WITH new AS (
    INSERT INTO ssh_access.event_relay AS r (site, published_seq)
    SELECT c.site, coalesce((SELECT min(e.seq) - 1 FROM ssh_access.event e
                              WHERE e.site = $1), c.last_seq)
      FROM ssh_access.event_counter c
     WHERE c.site = $1 AND NOT EXISTS (SELECT FROM ssh_access.event_relay WHERE site = $1)
    -- Of two that ask for the first time at once the second gets the first one's row.
    ON CONFLICT (site) DO UPDATE SET published_seq = r.published_seq
    RETURNING published_seq
)
SELECT published_seq FROM new
UNION ALL
SELECT published_seq FROM ssh_access.event_relay WHERE site = $1
