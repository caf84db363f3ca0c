-- Takes a user of a Site from its member. $1 Site, $2 user.
-- No row: it belongs to nobody now.
WITH gone AS (
    UPDATE ssh_access.site_account
       SET removed_at = clock_timestamp()
     WHERE site = $1 AND unix_user = $2 AND removed_at IS NULL
    RETURNING account_id, site, member_id, unix_user, added_at, removed_at
), told AS (
    INSERT INTO ssh_access.changed_member (member_id) SELECT member_id FROM gone
)
SELECT account_id, site, member_id, unix_user, added_at, removed_at FROM gone
