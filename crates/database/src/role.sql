-- Each row is a reason why the current role must not serve.
-- $1: the role that its context has for this process; $2: the context's schema.
WITH me AS (SELECT * FROM pg_roles WHERE rolname = current_user)
SELECT 'it is neither ' || $1 || ' nor a member of it' AS reason
  FROM me WHERE NOT pg_has_role(me.oid, (SELECT oid FROM pg_roles WHERE rolname = $1), 'MEMBER')
             OR NOT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)
UNION ALL
SELECT 'it is a superuser' FROM me WHERE rolsuper
UNION ALL
SELECT 'it may create roles' FROM me WHERE rolcreaterole
UNION ALL
SELECT 'it may create databases' FROM me WHERE rolcreatedb
UNION ALL
SELECT 'it may replicate' FROM me WHERE rolreplication
UNION ALL
SELECT 'it passes row security' FROM me WHERE rolbypassrls
UNION ALL
SELECT 'it is a member of ' || r.rolname
  FROM me JOIN pg_auth_members m ON m.member = me.oid JOIN pg_roles r ON r.oid = m.roleid
 WHERE r.rolname <> $1
UNION ALL
SELECT 'it owns ' || count(*) || ' objects'
  FROM me JOIN pg_shdepend d ON d.refclassid = 'pg_authid'::regclass AND d.refobjid = me.oid AND d.deptype = 'o'
HAVING count(*) > 0
UNION ALL
SELECT 'it may create in the database' FROM me
 WHERE has_database_privilege(current_database(), 'CREATE')
UNION ALL
SELECT 'it may create in the schema ' || nspname FROM pg_namespace
 WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND has_schema_privilege(oid, 'CREATE')
UNION ALL
SELECT 'it may read or write ' || n.nspname || '.' || c.relname
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname NOT IN ($2, 'information_schema') AND n.nspname !~ '^pg_'
   AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND (has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
        OR has_table_privilege(c.oid, 'DELETE, TRUNCATE, TRIGGER'))
   AND has_schema_privilege(n.oid, 'USAGE')
UNION ALL
SELECT 'its commits would not be durable: synchronous_commit is off'
 WHERE current_setting('synchronous_commit') = 'off'
