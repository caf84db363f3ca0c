-- Members' public keys, their accounts at Sites, and the feed of each Site.
-- The roles are made once in each cluster by an administrator (`site-admin database provision`).
-- Names are compared as bytes ("C"): so the agent of a Site sorts them too.

-- What changes the keys of a member locks its row, so that no more of them are active than may be.
CREATE TABLE member (
    member_id text    COLLATE "C" PRIMARY KEY CHECK (octet_length(member_id) BETWEEN 1 AND 255),
    keys      integer NOT NULL DEFAULT 0 CHECK (keys BETWEEN 0 AND 32)
) WITH (fillfactor = 50);

-- A key never changes but to be removed. One that has expired is no longer in force anywhere; it is
-- marked as removed when its member adds another one.
CREATE TABLE member_key (
    key_id      text COLLATE "C" PRIMARY KEY
                     CHECK (key_id ~ '^key_[0-9a-hjkmnp-tv-z]{25}[048cgmrw]$'),
    member_id   text COLLATE "C" NOT NULL REFERENCES member,
    public_key  text        NOT NULL CHECK (octet_length(public_key) <= 8192
                                            AND public_key ~ '^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}$'),
    fingerprint text        NOT NULL CHECK (fingerprint ~ '^SHA256:[A-Za-z0-9+/]{43}$'),
    added_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at  timestamptz,
    removed_at  timestamptz
);

-- Two members may have one key; a member has it once.
CREATE UNIQUE INDEX member_key_once ON member_key (member_id, fingerprint)
 WHERE removed_at IS NULL;
CREATE INDEX member_key_of_member ON member_key (member_id, key_id);

-- Which user of a Site a member is.
CREATE TABLE site_account (
    account_id bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    site       text        NOT NULL CHECK (site ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    member_id  text COLLATE "C" NOT NULL CHECK (octet_length(member_id) BETWEEN 1 AND 255),
    unix_user  text COLLATE "C" NOT NULL CHECK (unix_user ~ '^[a-z][a-z0-9_-]{0,31}$'
                                                AND unix_user <> 'root'),
    added_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    removed_at timestamptz
);

-- A user of a Site belongs to one member.
CREATE UNIQUE INDEX site_account_once ON site_account (site, unix_user) WHERE removed_at IS NULL;
CREATE INDEX site_account_of_member ON site_account (member_id, site);
CREATE INDEX site_account_of_site ON site_account (site, account_id);

-- A member of whom something changed, written with the change. Whoever propagates brings it to the
-- Sites where the member has or had an account: a statement that sees this row sees its change, and
-- every change that was committed before it.
CREATE TABLE changed_member (
    change_id  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    member_id  text COLLATE "C" NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A member whose keys at a Site have to be looked at. `last_change` tells a change that came while
-- somebody looked from the one that he saw; `since` is the oldest of them.
CREATE TABLE pending_member (
    site        text        NOT NULL,
    member_id   text COLLATE "C" NOT NULL,
    last_change bigint      NOT NULL,
    since       timestamptz NOT NULL,
    PRIMARY KEY (site, member_id)
);
CREATE INDEX pending_member_since ON pending_member (site, since);

-- Who propagates to a Site. The fence grows with each new holder.
CREATE TABLE propagator_lease (
    site       text        PRIMARY KEY,
    holder     text        NOT NULL CHECK (octet_length(holder) BETWEEN 1 AND 64),
    fence      bigint      NOT NULL CHECK (fence >= 1),
    expires_at timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The newest place of each Site's feed, and the oldest that is left. The row lock of a change, held to
-- the commit, makes the sequence gap-free and equal to the order of commits.
CREATE TABLE site_feed (
    site           text    PRIMARY KEY CHECK (site ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'),
    head           bigint  NOT NULL DEFAULT 0 CHECK (head >= 0),
    head_digest    bytea   NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
                           CHECK (octet_length(head_digest) = 32),
    floor          bigint  NOT NULL DEFAULT 0 CHECK (floor >= 0),
    floor_digest   bytea   NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
                           CHECK (octet_length(floor_digest) = 32),
    window_seconds integer NOT NULL CHECK (window_seconds BETWEEN 60 AND 86400),
    -- What was last told of it.
    told_overdue   boolean NOT NULL DEFAULT false,
    told_mismatch  boolean NOT NULL DEFAULT false,
    CHECK (floor <= head)
) WITH (fillfactor = 50);

-- What is in force at a Site.
CREATE TABLE site_key (
    site       text NOT NULL REFERENCES site_feed,
    unix_user  text COLLATE "C" NOT NULL,
    key_id     text COLLATE "C" NOT NULL,
    member_id  text COLLATE "C" NOT NULL,
    public_key text NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (site, unix_user, key_id)
);
-- The member first: the planner must not take the primary key for it, which would read the Site.
CREATE INDEX site_key_of_member ON site_key (member_id, site);
CREATE INDEX site_key_expiry ON site_key (site, expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE site_change (
    site         text        NOT NULL REFERENCES site_feed,
    seq          bigint      NOT NULL CHECK (seq >= 1),
    operation    text        NOT NULL CHECK (operation IN ('add', 'remove')),
    unix_user    text COLLATE "C" NOT NULL,
    key_id       text COLLATE "C" NOT NULL,
    member_id    text COLLATE "C" NOT NULL,
    public_key   text,
    expires_at   timestamptz,
    enforce_by   timestamptz,
    digest       bytea       NOT NULL CHECK (octet_length(digest) = 32),
    chain_digest bytea       NOT NULL CHECK (octet_length(chain_digest) = 32),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, seq),
    CHECK ((public_key IS NOT NULL) = (operation = 'add')),
    CHECK ((enforce_by IS NOT NULL) = (operation = 'remove')),
    CHECK (expires_at IS NULL OR operation = 'add')
);

-- What the agent of a Site has made durable. `failures` is a JSON array of what it could not apply.
CREATE TABLE site_ack (
    site            text        PRIMARY KEY,
    seq             bigint      NOT NULL CHECK (seq >= 0),
    chain_digest    bytea       NOT NULL CHECK (octet_length(chain_digest) = 32),
    acknowledged_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attested        text        CHECK (attested IN ('match', 'mismatch')),
    attested_at     timestamptz,
    failing         integer     NOT NULL DEFAULT 0 CHECK (failing BETWEEN 0 AND 1000),
    failures        text        NOT NULL DEFAULT '[]',
    CHECK ((attested IS NULL) = (attested_at IS NULL))
) WITH (fillfactor = 50);

-- The outbox, as in site_coordination.
CREATE TABLE event_counter (
    site     text   PRIMARY KEY,
    last_seq bigint NOT NULL DEFAULT 0 CHECK (last_seq >= 0)
) WITH (fillfactor = 50);

CREATE TABLE event (
    site        text        NOT NULL REFERENCES event_counter,
    seq         bigint      NOT NULL CHECK (seq >= 1),
    event_id    uuid        NOT NULL DEFAULT gen_random_uuid(),
    type        text        NOT NULL
                            CHECK (type IN ('ssh.removals.overdue', 'ssh.removals.enforced',
                                            'ssh.set.mismatched', 'ssh.set.matched')),
    -- A JSON object of numbers, times and words from small sets.
    data        text        NOT NULL,
    occurred_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (site, seq)
);

CREATE TABLE event_relay (
    site          text   PRIMARY KEY REFERENCES event_counter,
    published_seq bigint NOT NULL DEFAULT 0 CHECK (published_seq >= 0)
);

GRANT USAGE ON SCHEMA ssh_access
    TO ssh_access_api, ssh_access_process, ssh_access_registry;
GRANT SELECT ON __diesel_schema_migrations
    TO ssh_access_api, ssh_access_process, ssh_access_registry;

-- The side of a Site's agent: read the feed and what is in force, store acknowledgements. It reads of
-- what is not propagated yet only since when there is some.
GRANT SELECT ON site_feed, site_key, site_change, site_ack TO ssh_access_api;
GRANT SELECT (change_id, changed_at) ON changed_member TO ssh_access_api;
GRANT SELECT (site, since) ON pending_member TO ssh_access_api;
GRANT INSERT (site, seq, chain_digest, attested, attested_at, failing, failures),
      UPDATE (seq, chain_digest, acknowledged_at, attested, attested_at, failing, failures)
    ON site_ack TO ssh_access_api;

-- The process: bring changes to the feeds, and take away what is done and old. A row is locked with the
-- right to update it.
GRANT SELECT ON member_key, site_account, changed_member, pending_member, propagator_lease, site_feed,
    site_key, site_change, site_ack, event_counter, event, event_relay TO ssh_access_process;
GRANT UPDATE (changed_at), DELETE ON changed_member TO ssh_access_process;
GRANT INSERT, UPDATE (last_change), DELETE ON pending_member TO ssh_access_process;
GRANT INSERT, UPDATE (holder, fence, expires_at) ON propagator_lease TO ssh_access_process;
GRANT INSERT (site, window_seconds),
      UPDATE (head, head_digest, floor, floor_digest, window_seconds, told_overdue, told_mismatch)
    ON site_feed TO ssh_access_process;
GRANT INSERT, DELETE ON site_key TO ssh_access_process;
GRANT INSERT (site, seq, operation, unix_user, key_id, member_id, public_key, expires_at, enforce_by,
              digest, chain_digest), DELETE ON site_change TO ssh_access_process;
GRANT INSERT (site, last_seq), UPDATE (last_seq) ON event_counter TO ssh_access_process;
GRANT INSERT (site, seq, type, data) ON event TO ssh_access_process;
GRANT INSERT, UPDATE (published_seq) ON event_relay TO ssh_access_process;

-- The control plane's side: keys and accounts, and how far Sites are.
GRANT SELECT ON member, member_key, site_account, site_feed, site_ack TO ssh_access_registry;
GRANT INSERT (member_id, keys), UPDATE (keys) ON member TO ssh_access_registry;
GRANT INSERT (key_id, member_id, public_key, fingerprint, expires_at), UPDATE (removed_at)
    ON member_key TO ssh_access_registry;
GRANT INSERT (site, member_id, unix_user), UPDATE (removed_at) ON site_account
    TO ssh_access_registry;
GRANT INSERT (member_id) ON changed_member TO ssh_access_registry;
