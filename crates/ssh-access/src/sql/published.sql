-- Notes up to where the events of a Site are published, never further back. $1 Site, $2 sequence.
INSERT INTO ssh_access.event_relay AS r (site, published_seq) VALUES ($1, $2)
ON CONFLICT (site) DO UPDATE SET published_seq = excluded.published_seq
 WHERE r.published_seq < excluded.published_seq
RETURNING published_seq
