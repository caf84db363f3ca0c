-- Every right on anything outside PostgreSQL's own schemas, of everybody but its owner. $1 schema.
-- In that schema, in `public` and on the database: of everybody, but on the database not of other
-- contexts; elsewhere: of the schema's roles.
WITH granted (object, acl, owner, ours) AS (
    SELECT 'database', coalesce(datacl, acldefault('d', datdba)), datdba, true
      FROM pg_database WHERE datname = current_database()
    UNION ALL
    SELECT 'schema ' || nspname, coalesce(nspacl, acldefault('n', nspowner)), nspowner,
           nspname IN ($1, 'public')
      FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
    UNION ALL
    SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE '' END || n.nspname || '.' || c.relname,
           c.relacl, c.relowner, n.nspname = $1
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    UNION ALL
    SELECT n.nspname || '.' || c.relname || '.' || a.attname, a.attacl, c.relowner, n.nspname = $1
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    UNION ALL
    SELECT 'function ' || p.oid::regprocedure, coalesce(p.proacl, acldefault('f', p.proowner)),
           p.proowner, n.nspname = $1
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    UNION ALL
    SELECT 'defaults of ' || defaclrole::regrole, defaclacl, defaclrole, true FROM pg_default_acl
)
SELECT coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC') || ': ' || a.privilege_type || ' '
       || g.object || CASE WHEN a.is_grantable THEN ' and may grant it' ELSE '' END
  FROM granted g, aclexplode(g.acl) a
 WHERE a.grantee <> g.owner
   AND (g.ours OR starts_with(a.grantee::regrole::text, $1 || '_'))
   AND (g.object <> 'database' OR a.grantee = 0
        OR starts_with(a.grantee::regrole::text, $1 || '_'))
