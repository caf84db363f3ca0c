-- Takes the lease of a Site where nobody has it, and opens the Site's feed. $1 Site, $2 holder, $3 for
-- how many seconds, $4 the window in seconds.
-- A holder that asks again gets it again, with a new fence: what it sent before no longer counts.
-- No row: somebody else has it.
WITH taken AS (
    INSERT INTO ssh_access.propagator_lease AS l (site, holder, fence, expires_at)
    VALUES ($1, $2, 1, clock_timestamp() + make_interval(secs => $3))
    ON CONFLICT (site) DO UPDATE
       SET holder = excluded.holder, fence = l.fence + 1,
           expires_at = clock_timestamp() + make_interval(secs => $3)
     WHERE l.expires_at <= clock_timestamp() OR l.holder = excluded.holder
    RETURNING fence
), opened AS (
    INSERT INTO ssh_access.site_feed (site, window_seconds) SELECT $1, $4 FROM taken
    ON CONFLICT (site) DO UPDATE SET window_seconds = excluded.window_seconds
)
SELECT fence FROM taken
