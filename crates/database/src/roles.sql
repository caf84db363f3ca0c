-- Roles of Site Control's contexts. Run once for each release, as an administrator, connected to the
-- database of Site Control; running it again changes nothing. It sets no password: give each role
-- its own with \password, or by the means of your secret store.
DO $$
DECLARE
    owners CONSTANT text[] := ARRAY[{owners}];
    others CONSTANT text[] := ARRAY[{others}];
    role text;
BEGIN
    FOREACH role IN ARRAY owners || others LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format(
                'CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT', role);
        END IF;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    FOREACH role IN ARRAY owners LOOP
        EXECUTE format('GRANT CREATE ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
END
$$;
