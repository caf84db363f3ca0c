-- One command. $1 Site, $2 environment, $3 command id, $4 producer's key, $5 kind, $6 Run,
-- $7 digest, $8 body.
-- The head's row lock orders the sequence by commits. Of two callers with one key the second
-- violates command_once and leaves nothing behind; it then reads the first one's row.
-- No row at all: the stream does not exist yet.
WITH old AS (
    SELECT seq, digest, created_at FROM site_coordination.command WHERE command_id = $3
), head AS (
    UPDATE site_coordination.stream_head
       SET last_seq = last_seq + 1, last_digest = sha256(last_digest || $7)
     WHERE site = $1 AND environment = $2 AND NOT EXISTS (SELECT FROM old)
    RETURNING last_seq, last_digest
), new AS (
    INSERT INTO site_coordination.command
           (site, environment, seq, command_id, producer_key, kind, run_id, digest, chain_digest)
    SELECT $1, $2, last_seq, $3, $4, $5, $6, $7, last_digest FROM head
    RETURNING seq, digest, created_at
), body AS (
    INSERT INTO site_coordination.command_body (site, environment, seq, body)
    SELECT $1, $2, last_seq, $8 FROM head
)
SELECT seq, digest, created_at, true FROM new
UNION ALL
SELECT seq, digest, created_at, false FROM old
