-- Retains a binding. $1 Site, $2 member, $3 Unix user, $4 uid, $5 gid, $6 account.
-- Whoever changes what a member has at a Site waits for the others first, and then looks at the clock:
-- of two bindings one ends before the other begins, by their times too.
-- No row: the member has one at the Site; who asks reads it in another statement, as this one's
-- snapshot may be older than it.
WITH alone AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 0))
)
INSERT INTO resource_provisioning.native_binding (site, member_id, unix_user, uid, gid, account)
SELECT $1, $2, $3, $4, $5, $6 FROM alone
ON CONFLICT (site, member_id) WHERE released_at IS NULL DO NOTHING
RETURNING binding_id, retained_at
