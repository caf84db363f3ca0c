-- What is left of a schema: tables and sequences, functions, and who may do anything there. $1 schema.
SELECT relname::text FROM pg_class
 WHERE relnamespace = $1::text::regnamespace AND relkind <> 'i'
   AND relname <> '__diesel_schema_migrations'
UNION ALL
SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = $1::text::regnamespace
UNION ALL
SELECT grantee::regrole::text FROM pg_namespace, aclexplode(nspacl)
 WHERE nspname = $1 AND grantee <> nspowner
UNION ALL
SELECT grantee::regrole::text FROM pg_class, aclexplode(relacl)
 WHERE relnamespace = $1::text::regnamespace AND grantee <> relowner
