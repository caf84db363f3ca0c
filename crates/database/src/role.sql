-- Each row is a reason why the current role must not serve.
-- $1: the role that its context has for this process; $2: the context's schema; $3: whether it may
-- delete there.
-- `able` is every role whose rights the credential can use: its own and, member by member, others.
WITH me AS (
    SELECT * FROM pg_roles WHERE rolname = current_user
), able AS (
    SELECT r.*, CASE WHEN r.oid = me.oid THEN 'it' ELSE 'its role ' || r.rolname END AS who
      FROM me JOIN pg_roles r
        ON r.oid = me.oid OR (NOT me.rolsuper AND pg_has_role(me.oid, r.oid, 'MEMBER'))
)
SELECT 'it is neither ' || $1 || ' nor a member of it' AS reason
 WHERE NOT EXISTS (SELECT FROM able WHERE rolname = $1)
UNION ALL
SELECT 'it is a member of ' || able.rolname
  FROM able JOIN me ON able.oid <> me.oid WHERE able.rolname <> $1
UNION ALL
SELECT who || ' is a superuser' FROM able WHERE rolsuper
UNION ALL
SELECT who || ' may create roles' FROM able WHERE rolcreaterole
UNION ALL
SELECT who || ' may create databases' FROM able WHERE rolcreatedb
UNION ALL
SELECT who || ' may replicate' FROM able WHERE rolreplication
UNION ALL
SELECT who || ' passes row security' FROM able WHERE rolbypassrls
UNION ALL
SELECT who || ' owns ' || count(*) || ' objects'
  FROM able JOIN pg_shdepend d
    ON d.refclassid = 'pg_authid'::regclass AND d.refobjid = able.oid AND d.deptype = 'o'
 GROUP BY who
UNION ALL
SELECT who || ' may create in the database' FROM able
 WHERE has_database_privilege(able.oid, current_database(), 'CREATE')
UNION ALL
SELECT who || ' may create in the schema ' || nspname FROM able, pg_namespace n
 WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
   AND has_schema_privilege(able.oid, n.oid, 'CREATE')
UNION ALL
SELECT who || ' may read or write ' || n.nspname || '.' || c.relname
  FROM able, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname NOT IN ($2, 'information_schema') AND n.nspname !~ '^pg_'
   AND has_schema_privilege(able.oid, n.oid, 'USAGE')
   AND CASE c.relkind
       WHEN 'S' THEN has_sequence_privilege(able.oid, c.oid, 'SELECT, UPDATE, USAGE')
       ELSE c.relkind IN ('r', 'p', 'v', 'm', 'f')
        AND (has_any_column_privilege(able.oid, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
             OR has_table_privilege(able.oid, c.oid, 'DELETE, TRUNCATE, TRIGGER'))
       END
UNION ALL
-- Within the context's schema a later release may give a role more; but never this.
SELECT who || ' may ' || lower(privilege) || ' in ' || n.nspname || '.' || c.relname
  FROM able, pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,
       unnest(ARRAY['DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) privilege
 WHERE n.nspname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND NOT (privilege = 'DELETE' AND $3)
   AND has_table_privilege(able.oid, c.oid, privilege)
UNION ALL
SELECT 'its commits do not wait for the disk: synchronous_commit is off'
 WHERE current_setting('synchronous_commit') = 'off'
