-- Bindings of a Site in the order in which they were retained. $1 Site, $2 member or null for all,
-- $3 whether released ones too, $4 after this id, $5 rows at most.
SELECT binding_id, site, member_id, unix_user, uid, gid, account, retained_at, released_at
  FROM resource_provisioning.native_binding
 WHERE site = $1 AND binding_id > $4
   AND ($2 IS NULL OR member_id = $2) AND ($3 OR released_at IS NULL)
 ORDER BY binding_id
 LIMIT $5
