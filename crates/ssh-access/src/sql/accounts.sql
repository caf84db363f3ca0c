-- Accounts of a Site in the order in which they were added. $1 Site, $2 member or null for all,
-- $3 whether removed ones too, $4 after this id, $5 rows at the most.
SELECT account_id, site, member_id, unix_user, added_at, removed_at
  FROM ssh_access.site_account
 WHERE site = $1 AND account_id > $4
   AND ($2 IS NULL OR member_id = $2) AND ($3 OR removed_at IS NULL)
 ORDER BY account_id
 LIMIT $5
