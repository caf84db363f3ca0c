-- Sessions of Runtimes, marks on commands (cancel, void, `not_after`), private outputs, retention
-- and the outbox of events.
-- The role site_coordination_keeper is new: run `site-admin database provision` first.

-- `cancel_rev` grows by one with each cancel. Commands up to `trimmed_seq` have no bodies any more,
-- and perhaps no rows; the row at `trimmed_seq` itself stays, for its chain digest.
ALTER TABLE stream_head
    ADD COLUMN cancel_rev  bigint NOT NULL DEFAULT 0 CHECK (cancel_rev >= 0),
    ADD COLUMN trimmed_seq bigint NOT NULL DEFAULT 0 CHECK (trimmed_seq >= 0),
    ADD CHECK (trimmed_seq <= last_seq);

-- Whose generation it is; null in generation 1, which exists from the start.
ALTER TABLE stream_progress
    ADD COLUMN session_id text,
    ADD CHECK ((session_id IS NULL) = (generation = 1));

CREATE TABLE session (
    site          text        NOT NULL,
    environment   text        NOT NULL,
    generation    bigint      NOT NULL CHECK (generation >= 2),
    session_id    text        NOT NULL CHECK (session_id ~ '^[A-Za-z0-9_-]{16,64}$'),
    opened_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    superseded_at timestamptz,
    PRIMARY KEY (site, environment, generation),
    -- A superseded id is refused for ever.
    CONSTRAINT session_once UNIQUE (site, environment, session_id),
    FOREIGN KEY (site, environment) REFERENCES stream_progress
);

-- After it the command is voided when its result becomes due.
ALTER TABLE command ADD COLUMN not_after timestamptz;

-- A wish, not a verdict: what resolves the command is its result, or that it is voided.
CREATE TABLE command_cancel (
    site         text        NOT NULL,
    environment  text        NOT NULL,
    seq          bigint      NOT NULL,
    cancel_rev   bigint      NOT NULL CHECK (cancel_rev >= 1),
    cancelled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, environment, seq),
    CONSTRAINT command_cancel_rev_once UNIQUE (site, environment, cancel_rev),
    FOREIGN KEY (site, environment, seq) REFERENCES command
);

-- A command that will never have a result. `note` is what the operator said.
CREATE TABLE command_void (
    site        text        NOT NULL,
    environment text        NOT NULL,
    seq         bigint      NOT NULL,
    reason      text        NOT NULL CHECK (reason IN ('expired', 'operator')),
    note        text        CHECK (octet_length(note) BETWEEN 1 AND 1024),
    voided_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, environment, seq),
    FOREIGN KEY (site, environment, seq) REFERENCES command,
    CHECK ((note IS NULL) = (reason = 'expired'))
);

-- The private output that counts, where the result names one.
ALTER TABLE command_result
    ADD COLUMN output_digest bytea CHECK (octet_length(output_digest) = 32);

-- Private outputs, written before the result that names one of them. Compressing them again would
-- only cost time: a handler that cares has done it.
CREATE TABLE private_output (
    site        text        NOT NULL,
    environment text        NOT NULL,
    seq         bigint      NOT NULL,
    digest      bytea       NOT NULL CHECK (octet_length(digest) = 32),
    -- Its place among the outputs of the command. Two that arrive together want the same one, so
    -- that no command ever has more than these.
    slot        smallint    NOT NULL CHECK (slot BETWEEN 1 AND 8),
    bytes       bytea       NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, environment, seq, digest),
    CONSTRAINT private_output_slot_once UNIQUE (site, environment, seq, slot),
    FOREIGN KEY (site, environment, seq) REFERENCES command
);
ALTER TABLE private_output ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The outbox. Its sequence comes from a counter row, held to the commit, so that a reader can
-- resume after any event; one for each Site, so that Sites don't wait for each other. Events are
-- rare: nothing that happens once for each command is one.
CREATE TABLE event_counter (
    site     text   PRIMARY KEY,
    last_seq bigint NOT NULL DEFAULT 0 CHECK (last_seq >= 0)
) WITH (fillfactor = 50);

CREATE TABLE event (
    site        text        NOT NULL REFERENCES event_counter,
    seq         bigint      NOT NULL CHECK (seq >= 1),
    event_id    uuid        NOT NULL DEFAULT gen_random_uuid(),
    type        text        NOT NULL
                            CHECK (type IN ('commands.session.opened', 'commands.command.cancelled',
                                            'commands.command.voided')),
    environment text        NOT NULL,
    -- What it is about: a session's id or a command's.
    subject     text        NOT NULL,
    -- A JSON object of ids, numbers and words from small sets; never anything that was written by
    -- hand.
    data        text        NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, seq)
);

-- How far the relay of a Site has published.
CREATE TABLE event_relay (
    site          text   PRIMARY KEY REFERENCES event_counter,
    published_seq bigint NOT NULL DEFAULT 0 CHECK (published_seq >= 0)
);

GRANT USAGE ON SCHEMA site_coordination TO site_coordination_keeper;
GRANT SELECT ON __diesel_schema_migrations TO site_coordination_keeper;

GRANT SELECT ON session TO site_coordination_api, site_coordination_producer;
GRANT SELECT ON command_cancel, command_void, event_counter, event, event_relay
    TO site_coordination_api, site_coordination_producer, site_coordination_keeper;
GRANT INSERT (site, last_seq), UPDATE (last_seq) ON event_counter
    TO site_coordination_api, site_coordination_producer;
GRANT INSERT (site, seq, type, environment, subject, data) ON event
    TO site_coordination_api, site_coordination_producer;

-- A Runtime's side: open a session, void what has expired, keep private outputs, relay events.
GRANT INSERT (site, environment) ON stream_head, stream_progress TO site_coordination_api;
GRANT UPDATE (generation, session_id) ON stream_progress TO site_coordination_api;
GRANT INSERT (site, environment, generation, session_id), UPDATE (superseded_at) ON session
    TO site_coordination_api;
GRANT INSERT (site, environment, seq, reason) ON command_void TO site_coordination_api;
GRANT SELECT, INSERT ON private_output TO site_coordination_api;
GRANT INSERT, UPDATE (published_seq) ON event_relay TO site_coordination_api;

-- A producer's side: cancel, and void what is stuck.
GRANT UPDATE (cancel_rev) ON stream_head TO site_coordination_producer;
GRANT UPDATE (done_seq) ON stream_progress TO site_coordination_producer;
GRANT INSERT (site, environment, seq, cancel_rev) ON command_cancel TO site_coordination_producer;
GRANT INSERT (site, environment, seq, reason, note) ON command_void TO site_coordination_producer;

-- The keeper's side: delete what retention allows. It reads no body and no output.
GRANT SELECT ON stream_head, stream_progress, command, command_result TO site_coordination_keeper;
GRANT SELECT (site, environment, seq) ON command_body, result_body, private_output
    TO site_coordination_keeper;
GRANT UPDATE (trimmed_seq) ON stream_head TO site_coordination_keeper;
GRANT DELETE ON command_body, result_body, private_output, command_result, command_void,
    command_cancel, command, event TO site_coordination_keeper;
