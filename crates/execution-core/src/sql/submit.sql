-- Submits the next Attempt of a Run. $1 Run, $2 number.
-- The update of the Run is the only guard: after a wait for its row it compares again, so that of
-- many with one number one gets through, and none after a cancel.
-- No row: the Run is absent or cancelled, or another number is next.
WITH next AS (
    UPDATE execution_core.run
       SET last_attempt = $2
     WHERE run_id = $1 AND last_attempt = $2 - 1 AND cancelled_at IS NULL
    RETURNING run_id, last_attempt
)
INSERT INTO execution_core.attempt (run_id, number)
SELECT run_id, last_attempt FROM next
RETURNING submitted_at
