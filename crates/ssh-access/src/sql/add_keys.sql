-- Adds keys of members, those that are plainly new. Arrays of one length: $1 key ids, $2 members, $3
-- keys, $4 fingerprints, $5 ends or nulls.
-- Left out are a key that its member has already, or that came before in the arrays, one whose end has
-- passed, and every key of a member who would have too many: whoever asks looks at each by itself.
-- Members are counted and locked as in add_key.sql, in one order for all who do this at once. A key that
-- was added at this moment violates member_key_once, and leaves nothing behind.
-- The ids that were stored, and when.
WITH input AS MATERIALIZED (
    SELECT DISTINCT ON (member_id, fingerprint)
           key_id, member_id COLLATE "C" AS member_id, public_key, fingerprint, expires_at
      FROM unnest($1, $2, $3, $4, $5) WITH ORDINALITY
           AS t (key_id, member_id, public_key, fingerprint, expires_at, place)
     WHERE coalesce(expires_at > clock_timestamp(), true)
     ORDER BY member_id, fingerprint, place
), missing AS MATERIALIZED (
    SELECT i.* FROM input i
     WHERE NOT EXISTS (SELECT FROM ssh_access.member_key k
                        WHERE k.member_id = i.member_id AND k.fingerprint = i.fingerprint
                          AND k.removed_at IS NULL)
), counted AS (
    INSERT INTO ssh_access.member AS m (member_id, keys)
    SELECT member_id, count(*) FROM missing
     GROUP BY member_id HAVING count(*) <= 32
     ORDER BY member_id
    ON CONFLICT (member_id) DO UPDATE SET keys = m.keys + excluded.keys
     WHERE m.keys + excluded.keys <= 32
    RETURNING member_id
), new AS (
    INSERT INTO ssh_access.member_key (key_id, member_id, public_key, fingerprint, expires_at)
    SELECT key_id, member_id, public_key, fingerprint, expires_at
      FROM missing JOIN counted USING (member_id)
    RETURNING key_id, added_at
), told AS (
    INSERT INTO ssh_access.changed_member (member_id) SELECT member_id FROM counted
)
SELECT key_id, added_at FROM new
