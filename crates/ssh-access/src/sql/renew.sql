-- Keeps the lease of a Site. $1 Site, $2 fence, $3 for how many seconds.
-- No row: it has expired, or is somebody else's.
UPDATE ssh_access.propagator_lease
   SET expires_at = clock_timestamp() + make_interval(secs => $3)
 WHERE site = $1 AND fence = $2 AND expires_at > clock_timestamp()
RETURNING fence
