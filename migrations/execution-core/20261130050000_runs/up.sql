-- Accepted Runs and their Attempts.
-- The roles are made once in each cluster by an administrator (`site-admin database provision`).

-- A Run as the control plane accepted it. Nothing of that ever changes; what happens to it are the
-- two columns at the end.
CREATE TABLE run (
    run_id                text        PRIMARY KEY
                                      CHECK (run_id ~ '^[A-Za-z0-9][A-Za-z0-9._~:-]{0,127}$'),
    project_id            text        NOT NULL CHECK (octet_length(project_id) BETWEEN 1 AND 128),
    member_id             text        NOT NULL CHECK (octet_length(member_id) BETWEEN 1 AND 255),
    site                  text        NOT NULL CHECK (site ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    environment           text        NOT NULL CHECK (environment IN ('k8s', 'slurm')),
    deadline              timestamptz NOT NULL,
    repository_instance   text        NOT NULL
                                      CHECK (octet_length(repository_instance) BETWEEN 1 AND 64),
    repository_project_id bigint      NOT NULL CHECK (repository_project_id >= 1),
    repository_path       text        NOT NULL
                                      CHECK (octet_length(repository_path) BETWEEN 3 AND 1024),
    repository_ref        text        NOT NULL
                                      CHECK (octet_length(repository_ref) BETWEEN 1 AND 255),
    repository_commit     text        NOT NULL
                                      CHECK (repository_commit ~ '^([0-9a-f]{40}|[0-9a-f]{64})$'),
    -- Text, not jsonb: what comes out are the bytes that went in.
    material              text        NOT NULL CHECK (octet_length(material) <= 1048576),
    accepted_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The newest Attempt, 0 before the first. The row lock of its update, held to the commit, lets
    -- Attempts come one after the other, and none after the cancel.
    last_attempt          integer     NOT NULL DEFAULT 0 CHECK (last_attempt BETWEEN 0 AND 1000),
    cancelled_at          timestamptz,
    state                 text        NOT NULL GENERATED ALWAYS AS
                          (CASE WHEN cancelled_at IS NULL THEN 'accepted' ELSE 'cancelled' END) STORED
);

CREATE TABLE attempt (
    run_id       text        NOT NULL REFERENCES run,
    number       integer     NOT NULL CHECK (number BETWEEN 1 AND 1000),
    submitted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    final_at     timestamptz,
    state        text        NOT NULL GENERATED ALWAYS AS
                 (CASE WHEN final_at IS NULL THEN 'submitted' ELSE 'final' END) STORED,
    PRIMARY KEY (run_id, number)
);

GRANT USAGE ON SCHEMA execution_core TO execution_core_api, execution_core_writer;
GRANT SELECT ON __diesel_schema_migrations, run, attempt
    TO execution_core_api, execution_core_writer;

-- The control plane's side: accept, submit, cancel, note that an Attempt is over. The times are the
-- database's.
GRANT INSERT (run_id, project_id, member_id, site, environment, deadline, repository_instance,
              repository_project_id, repository_path, repository_ref, repository_commit, material),
      UPDATE (last_attempt, cancelled_at) ON run TO execution_core_writer;
GRANT INSERT (run_id, number), UPDATE (final_at) ON attempt TO execution_core_writer;
