-- Gives the lease of a Site back; the fence stays. $1 Site, $2 fence.
UPDATE ssh_access.propagator_lease
   SET expires_at = clock_timestamp()
 WHERE site = $1 AND fence = $2 AND expires_at > clock_timestamp()
RETURNING fence
