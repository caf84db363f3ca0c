-- One command. $1 Site, $2 environment, $3 command id, $4 producer's key, $5 kind, $6 Run,
-- $7 digest, $8 body, $9 not after, $10 commands without an ending at the most.
-- The head's row lock orders the sequence by commits. Of two callers with one key the second
-- violates command_once and leaves nothing behind; it then reads the first one's row.
-- The progress is read without a lock: while this waits for the head it can only grow, so that the
-- limit is never passed, and a refusal can be a result too late.
-- No row at all: the stream does not exist yet, or it is full.
WITH old AS (
    SELECT seq, digest, created_at FROM site_coordination.command WHERE command_id = $3
), head AS (
    UPDATE site_coordination.stream_head
       SET last_seq = last_seq + 1, last_digest = sha256(last_digest || $7)
     WHERE site = $1 AND environment = $2 AND NOT EXISTS (SELECT FROM old)
       AND last_seq < $10 + (SELECT done_seq FROM site_coordination.stream_progress
                              WHERE site = $1 AND environment = $2)
    RETURNING last_seq, last_digest
), new AS (
    INSERT INTO site_coordination.command
           (site, environment, seq, command_id, producer_key, kind, run_id, digest, chain_digest,
            not_after)
    SELECT $1, $2, last_seq, $3, $4, $5, $6, $7, last_digest, $9 FROM head
    RETURNING seq, digest, created_at
), body AS (
    INSERT INTO site_coordination.command_body (site, environment, seq, body)
    SELECT $1, $2, last_seq, $8 FROM head
)
SELECT seq, digest, created_at, true FROM new
UNION ALL
SELECT seq, digest, created_at, false FROM old
