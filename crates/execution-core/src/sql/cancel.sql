-- Cancels a Run. $1 Run.
-- No row: it is absent, or cancelled already.
UPDATE execution_core.run
   SET cancelled_at = clock_timestamp()
 WHERE run_id = $1 AND cancelled_at IS NULL
RETURNING cancelled_at
