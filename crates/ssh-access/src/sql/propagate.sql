-- Writes changes to the feed of a Site: the changes, the head, and what is in force, at once. $1 Site,
-- $2 fence, $3 the head as it was read and $4 its digest; then arrays of the same length: $5
-- operations, $6 users, $7 key ids, $8 members, $9 keys, $10 ends, $11 by when they have to be in
-- force, $12 digests, $13 chain digests; then $14 members that were looked at and $15 the change up to
-- which.
-- `guard` locks the lease, so that nobody takes it before the commit, and `moved` compares the head
-- that everything here was computed from: whoever lost the lease, or was overtaken, writes nothing.
-- No row: that is so.
WITH guard AS MATERIALIZED (
    SELECT site FROM ssh_access.propagator_lease
     WHERE site = $1 AND fence = $2 AND expires_at > clock_timestamp()
       FOR NO KEY UPDATE
), input AS MATERIALIZED (
    SELECT * FROM unnest($5, $6, $7, $8, $9, $10, $11, $12, $13)
        WITH ORDINALITY AS t (operation, unix_user, key_id, member_id, public_key, expires_at,
                              enforce_by, digest, chain_digest, place)
), moved AS (
    UPDATE ssh_access.site_feed f
       SET head = f.head + (SELECT count(*) FROM input),
           head_digest = coalesce((SELECT chain_digest FROM input ORDER BY place DESC LIMIT 1),
                                  f.head_digest)
      FROM guard
     WHERE f.site = $1 AND f.head = $3 AND f.head_digest = $4
    RETURNING f.head
), changes AS (
    INSERT INTO ssh_access.site_change
           (site, seq, operation, unix_user, key_id, member_id, public_key, expires_at, enforce_by,
            digest, chain_digest)
    SELECT $1, $3 + place, operation, unix_user, key_id, member_id, public_key, expires_at,
           enforce_by, digest, chain_digest
      FROM input, moved
), gone AS (
    DELETE FROM ssh_access.site_key k USING input, moved
     WHERE input.operation = 'remove'
       AND k.site = $1 AND k.unix_user = input.unix_user AND k.key_id = input.key_id
), new AS (
    INSERT INTO ssh_access.site_key (site, unix_user, key_id, member_id, public_key, expires_at)
    SELECT $1, unix_user, key_id, member_id, public_key, expires_at
      FROM input, moved WHERE operation = 'add'
), done AS (
    DELETE FROM ssh_access.pending_member p
     USING moved, unnest($14, $15) AS seen (member_id, last_change)
     WHERE p.site = $1 AND p.member_id = seen.member_id AND p.last_change = seen.last_change
)
SELECT head FROM moved
