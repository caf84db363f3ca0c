DROP TABLE attempt, run;
REVOKE SELECT ON __diesel_schema_migrations FROM execution_core_api, execution_core_writer;
REVOKE USAGE ON SCHEMA execution_core FROM execution_core_api, execution_core_writer;
