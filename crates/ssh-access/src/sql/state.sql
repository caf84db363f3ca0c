-- Where the feed of a Site is. $1 Site, $2 a sequence, $3 the window of who reads, in seconds.
-- The chain digest at that sequence is null where the feed has no such place.
-- The lease counts from the beginning of the transaction, which is before whatever it sees: what is
-- committed later can't be in force for longer than the window after that. Where something waits to be
-- propagated, it counts from the oldest of that, so that nobody's lease goes on while a removal waits.
-- The last column says since when something waits, if anything does.
SELECT coalesce(f.head, 0), coalesce(f.head_digest, decode(repeat('00', 32), 'hex')),
       coalesce(f.floor, 0),
       CASE WHEN $2 = 0 THEN decode(repeat('00', 32), 'hex')
            WHEN $2 = f.head THEN f.head_digest
            WHEN $2 = f.floor THEN f.floor_digest
            ELSE (SELECT chain_digest FROM ssh_access.site_change WHERE site = $1 AND seq = $2)
       END,
       transaction_timestamp(),
       least(transaction_timestamp(), waits.since)
           + make_interval(secs => lease.seconds - least(60, lease.seconds / 10)),
       waits.since
  FROM (VALUES (1)) always
  LEFT JOIN ssh_access.site_feed f ON f.site = $1,
       LATERAL (SELECT least($3, coalesce(f.window_seconds, $3)) AS seconds) lease,
       (SELECT least((SELECT min(since) FROM ssh_access.pending_member WHERE site = $1),
                     (SELECT changed_at FROM ssh_access.changed_member ORDER BY change_id LIMIT 1))
               AS since) waits
