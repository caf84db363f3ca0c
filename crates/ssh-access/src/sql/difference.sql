-- What has to change at a Site so that the keys of some members are in force as they should be.
-- $1 Site, $2 the members, $3 the window in seconds.
-- Removals first. Each says by when it has to be in force: the window after the moment from which on
-- it should not have been, which is when the key or the account was removed or when the key expired.
-- Looked up member by member: what other members have costs nothing.
WITH asked AS MATERIALIZED (
    SELECT DISTINCT member_id COLLATE "C" AS member_id FROM unnest($2) AS t (member_id)
), wanted AS MATERIALIZED (
    SELECT a.unix_user, k.key_id, k.member_id, k.public_key, k.expires_at
      FROM asked,
           LATERAL (SELECT unix_user FROM ssh_access.site_account
                     WHERE member_id = asked.member_id AND site = $1 AND removed_at IS NULL
                    OFFSET 0) a,
           LATERAL (SELECT key_id, member_id, public_key, expires_at FROM ssh_access.member_key
                     WHERE member_id = asked.member_id AND removed_at IS NULL
                       AND (expires_at IS NULL OR expires_at > clock_timestamp())
                     ORDER BY member_id, key_id
                    OFFSET 0) k
), present AS MATERIALIZED (
    SELECT s.unix_user, s.key_id, s.member_id
      FROM asked,
           LATERAL (SELECT unix_user, key_id, member_id FROM ssh_access.site_key
                     WHERE member_id BETWEEN asked.member_id AND asked.member_id AND site = $1
                     ORDER BY member_id
                    OFFSET 0) s
), removed AS (
    SELECT p.unix_user, p.key_id, p.member_id,
           (SELECT least(k.removed_at,
                         CASE WHEN k.expires_at <= clock_timestamp() THEN k.expires_at END)
              FROM ssh_access.member_key k WHERE k.key_id = p.key_id) AS key_gone_at,
           (SELECT CASE WHEN bool_and(a.removed_at IS NOT NULL) THEN max(a.removed_at) END
              FROM ssh_access.site_account a
             WHERE a.member_id = p.member_id AND a.site = $1 AND a.unix_user = p.unix_user)
               AS account_gone_at
      FROM present p
     WHERE NOT EXISTS (SELECT FROM wanted w
                        WHERE w.unix_user = p.unix_user AND w.key_id = p.key_id)
)
SELECT 'remove', unix_user, key_id, member_id, NULL::text, NULL::timestamptz,
       coalesce(least(key_gone_at, account_gone_at), clock_timestamp())
           + make_interval(secs => $3)
  FROM removed
UNION ALL
SELECT 'add', w.unix_user, w.key_id, w.member_id, w.public_key, w.expires_at, NULL
  FROM wanted w
 WHERE NOT EXISTS (SELECT FROM present p
                    WHERE p.unix_user = w.unix_user AND p.key_id = w.key_id)
 ORDER BY 1 DESC, 2, 3
