-- Roles of site-coordination. Run once, as an administrator, connected to the database of Site
-- Control; running it again changes nothing. It sets no password: give each role its own with
-- \password, or by the means of your secret store.
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY[
        'site_coordination_owner', 'site_coordination_api', 'site_coordination_producer',
        'site_coordination_keeper'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format(
                'CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT', role);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    EXECUTE format('GRANT CREATE ON DATABASE %I TO site_coordination_owner', current_database());
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
END
$$;
