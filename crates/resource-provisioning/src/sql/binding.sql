-- A binding, retained or released. $1 its id.
SELECT binding_id, site, member_id, unix_user, uid, gid, account, retained_at, released_at
  FROM resource_provisioning.native_binding
 WHERE binding_id = $1
