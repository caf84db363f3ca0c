-- Gives a user of a Site to a member. $1 Site, $2 member, $3 user.
-- No row: the user belongs to somebody already; who asks reads it in another statement, as this one's
-- snapshot may be older than it.
WITH new AS (
    INSERT INTO ssh_access.site_account (site, member_id, unix_user) VALUES ($1, $2, $3)
    ON CONFLICT (site, unix_user) WHERE removed_at IS NULL DO NOTHING
    RETURNING account_id, site, member_id, unix_user, added_at, removed_at
), told AS (
    INSERT INTO ssh_access.changed_member (member_id) SELECT member_id FROM new
)
SELECT account_id, site, member_id, unix_user, added_at, removed_at FROM new
