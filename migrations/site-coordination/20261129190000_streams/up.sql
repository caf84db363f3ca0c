-- Ordered command streams of a Site and their results.
-- The roles are made once in each cluster by an administrator (`site-admin database roles`).

-- One row for each stream: its newest end. The row lock, held to the commit, is what makes the
-- sequence gap-free and equal to the order of commits. Half-filled pages keep its updates on the page (HOT).
CREATE TABLE stream_head (
    site        text   NOT NULL CHECK (site ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    environment text   NOT NULL CHECK (environment IN ('k8s', 'slurm')),
    last_seq    bigint NOT NULL DEFAULT 0 CHECK (last_seq >= 0),
    last_digest bytea  NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
                       CHECK (octet_length(last_digest) = 32),
    PRIMARY KEY (site, environment)
) WITH (fillfactor = 50);

-- Apart from the head, so that a result never waits for an enqueue.
CREATE TABLE stream_progress (
    site        text   NOT NULL,
    environment text   NOT NULL,
    done_seq    bigint NOT NULL DEFAULT 0 CHECK (done_seq >= 0),
    generation  bigint NOT NULL DEFAULT 1 CHECK (generation >= 1),
    PRIMARY KEY (site, environment),
    FOREIGN KEY (site, environment) REFERENCES stream_head
) WITH (fillfactor = 50);

CREATE TABLE command (
    site         text        NOT NULL,
    environment  text        NOT NULL,
    seq          bigint      NOT NULL CHECK (seq >= 1),
    command_id   text        NOT NULL CHECK (command_id ~ '^cmd_[0-9a-hjkmnp-tv-z]{32}$'),
    producer_key text        NOT NULL CHECK (octet_length(producer_key) BETWEEN 1 AND 200),
    kind         text        NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 64),
    run_id       text        CHECK (octet_length(run_id) BETWEEN 1 AND 128),
    digest       bytea       NOT NULL CHECK (octet_length(digest) = 32),
    chain_digest bytea       NOT NULL CHECK (octet_length(chain_digest) = 32),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, environment, seq),
    -- The id is derived from Site, environment and the producer's key: one key, one command.
    CONSTRAINT command_once UNIQUE (command_id)
);

-- Bodies stand apart so that they can be dropped by age while the narrow rows stay. They are text,
-- not jsonb: what comes out are the bytes that went in.
CREATE TABLE command_body (
    site        text   NOT NULL,
    environment text   NOT NULL,
    seq         bigint NOT NULL,
    body        text   NOT NULL CHECK (octet_length(body) <= 1048576),
    PRIMARY KEY (site, environment, seq),
    FOREIGN KEY (site, environment, seq) REFERENCES command
);

CREATE TABLE command_result (
    site        text        NOT NULL,
    environment text        NOT NULL,
    seq         bigint      NOT NULL,
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 32),
    outcome     text        NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'rejected')),
    generation  bigint      NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, environment, seq),
    FOREIGN KEY (site, environment, seq) REFERENCES command
);

CREATE TABLE result_body (
    site        text   NOT NULL,
    environment text   NOT NULL,
    seq         bigint NOT NULL,
    body        text   NOT NULL CHECK (octet_length(body) <= 1048576),
    PRIMARY KEY (site, environment, seq),
    FOREIGN KEY (site, environment, seq) REFERENCES command_result
);

GRANT USAGE ON SCHEMA site_coordination TO site_coordination_api, site_coordination_producer;
GRANT SELECT ON __diesel_schema_migrations
    TO site_coordination_api, site_coordination_producer;

GRANT SELECT ON stream_head, stream_progress, command, command_body, command_result, result_body
    TO site_coordination_api, site_coordination_producer;

-- A Runtime's side: store the next result and move the progress, nothing else.
GRANT UPDATE (done_seq) ON stream_progress TO site_coordination_api;
GRANT INSERT ON command_result, result_body TO site_coordination_api;

-- A producer's side: open a stream, enqueue.
GRANT INSERT (site, environment) ON stream_head, stream_progress TO site_coordination_producer;
GRANT UPDATE (last_seq, last_digest) ON stream_head TO site_coordination_producer;
GRANT INSERT ON command, command_body TO site_coordination_producer;
