-- The keys of members with fingerprints that are not removed. Arrays of one length: $1 members, $2
-- fingerprints. Looked up one by one: what other members have costs nothing.
SELECT k.key_id, k.member_id, k.public_key, k.added_at, k.expires_at, k.removed_at,
       coalesce(k.expires_at <= clock_timestamp(), false)
  FROM unnest($1, $2) AS t (member_id, fingerprint),
       LATERAL (SELECT * FROM ssh_access.member_key
                 WHERE member_id = t.member_id AND fingerprint = t.fingerprint
                   AND removed_at IS NULL
                OFFSET 0) k
