DROP TABLE native_binding;
REVOKE SELECT ON __diesel_schema_migrations
    FROM resource_provisioning_api, resource_provisioning_writer;
REVOKE USAGE ON SCHEMA resource_provisioning
    FROM resource_provisioning_api, resource_provisioning_writer;
