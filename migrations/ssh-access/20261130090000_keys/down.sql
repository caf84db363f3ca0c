DROP TABLE event_relay, event, event_counter, site_ack, site_change, site_key, site_feed,
    propagator_lease, pending_member, changed_member, site_account, member_key, member;
REVOKE SELECT ON __diesel_schema_migrations
    FROM ssh_access_api, ssh_access_process, ssh_access_registry;
REVOKE USAGE ON SCHEMA ssh_access
    FROM ssh_access_api, ssh_access_process, ssh_access_registry;
