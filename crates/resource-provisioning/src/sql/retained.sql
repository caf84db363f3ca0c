-- The binding of a member that is retained. $1 Site, $2 member.
SELECT binding_id, site, member_id, unix_user, uid, gid, account, retained_at, released_at
  FROM resource_provisioning.native_binding
 WHERE site = $1 AND member_id = $2 AND released_at IS NULL
