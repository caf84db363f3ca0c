-- Native accounts of a Site that members have.
-- The roles are made once in each cluster by an administrator (`site-admin database provision`).

-- A binding is never changed but to be released; then another one may be retained.
CREATE TABLE native_binding (
    binding_id  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    site        text        NOT NULL CHECK (site ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    member_id   text        NOT NULL CHECK (octet_length(member_id) BETWEEN 1 AND 255),
    unix_user   text        NOT NULL CHECK (octet_length(unix_user) <= 32 AND unix_user <> 'root'
                                            AND unix_user ~ '^[a-z_][a-z0-9_-]*[$]?$'),
    uid         bigint      NOT NULL
                            CHECK (uid BETWEEN 1000 AND 2147483647 AND uid NOT IN (65534, 65535)),
    gid         bigint      NOT NULL
                            CHECK (gid BETWEEN 100 AND 2147483647 AND gid NOT IN (65534, 65535)),
    account     text        NOT NULL CHECK (account ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    retained_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    released_at timestamptz
);

-- A member has one account at a Site.
CREATE UNIQUE INDEX native_binding_one_retained ON native_binding (site, member_id)
 WHERE released_at IS NULL;

-- For lists, in the order in which they were retained.
CREATE INDEX native_binding_of_site ON native_binding (site, binding_id);

GRANT USAGE ON SCHEMA resource_provisioning
    TO resource_provisioning_api, resource_provisioning_writer;
GRANT SELECT ON __diesel_schema_migrations, native_binding
    TO resource_provisioning_api, resource_provisioning_writer;

-- The control plane's side: retain and release. The times are the database's.
GRANT INSERT (site, member_id, unix_user, uid, gid, account), UPDATE (released_at) ON native_binding
    TO resource_provisioning_writer;
