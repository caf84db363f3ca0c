-- Each right that a role was granted by name on the database and in the schema of its context.
-- $1: the role; $2: the schema.
-- What is granted to everybody is not looked for here: the check of a credential refuses what it
-- opens.
WITH granted (object, acl) AS (
    SELECT 'database', datacl FROM pg_database WHERE datname = current_database()
    UNION ALL
    SELECT 'schema ' || nspname, nspacl FROM pg_namespace WHERE nspname = $2
    UNION ALL
    SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' ELSE '' END || c.relname, c.relacl
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $2
    UNION ALL
    SELECT c.relname || '.' || a.attname, a.attacl
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
      JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $2
    UNION ALL
    SELECT 'function ' || p.proname, p.proacl
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $2
)
SELECT a.privilege_type || ' on ' || g.object
       || CASE WHEN a.is_grantable THEN ' with the right to grant it' ELSE '' END AS "right"
  FROM granted g, aclexplode(g.acl) a JOIN pg_roles r ON r.oid = a.grantee
 WHERE r.rolname = $1
