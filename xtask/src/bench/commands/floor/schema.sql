-- The plain tables of the floor: what any queue of commands with an order, a chain and stored results
-- keeps, and no more.
CREATE TABLE head (
    stream int PRIMARY KEY,
    last_seq bigint NOT NULL DEFAULT 0,
    last_digest bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
) WITH (fillfactor = 50);
CREATE TABLE progress (
    stream int PRIMARY KEY,
    done_seq bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE command (
    stream int NOT NULL,
    seq bigint NOT NULL,
    command_id text NOT NULL UNIQUE,
    digest bytea NOT NULL,
    chain_digest bytea NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (stream, seq)
);
CREATE TABLE result (
    stream int NOT NULL,
    seq bigint NOT NULL,
    digest bytea NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (stream, seq)
);
INSERT INTO head (stream) SELECT generate_series(1, 10);
INSERT INTO progress (stream) SELECT generate_series(1, 10);
