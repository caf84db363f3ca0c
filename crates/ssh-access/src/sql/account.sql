-- The newest account with a user of a Site, removed or not. $1 Site, $2 user.
SELECT account_id, site, member_id, unix_user, added_at, removed_at
  FROM ssh_access.site_account
 WHERE site = $1 AND unix_user = $2
 ORDER BY account_id DESC
 LIMIT 1
