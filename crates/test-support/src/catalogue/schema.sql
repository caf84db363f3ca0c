-- Every column, constraint, index, function and right of a schema. $1 schema.
SELECT format('%s %s.%s %s%s %s %s', c.relkind, c.relname, a.attname,
              format_type(a.atttypid, a.atttypmod), CASE WHEN attnotnull THEN ' NOT NULL' END,
              pg_get_expr(d.adbin, d.adrelid), c.reloptions)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
 WHERE c.relnamespace = $1::text::regnamespace
UNION ALL
SELECT format('constraint %s %s', conrelid::regclass, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = $1::text::regnamespace
UNION ALL
SELECT indexdef FROM pg_indexes WHERE schemaname = $1
UNION ALL
SELECT 'function ' || oid::regprocedure
  FROM pg_proc WHERE pronamespace = $1::text::regnamespace
UNION ALL
SELECT format('%s may %s %s.%s', a.grantee::regrole, a.privilege_type, c.relname, r.attname)
  FROM pg_class c,
       LATERAL (SELECT NULL AS attname, c.relacl AS acl UNION ALL
                SELECT attname, attacl FROM pg_attribute
                 WHERE attrelid = c.oid AND NOT attisdropped) r, aclexplode(r.acl) a
 WHERE c.relnamespace = $1::text::regnamespace
UNION ALL
SELECT format('%s may %s', a.grantee::regrole, a.privilege_type)
  FROM pg_namespace, aclexplode(nspacl) a WHERE nspname = $1
ORDER BY 1
