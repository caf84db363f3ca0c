DROP TABLE result_body, command_result, command_body, command, stream_progress, stream_head;
REVOKE SELECT ON __diesel_schema_migrations FROM site_coordination_api, site_coordination_producer;
REVOKE USAGE ON SCHEMA site_coordination FROM site_coordination_api, site_coordination_producer;
