-- Notes that an Attempt is over. $1 Run, $2 number.
-- No row: it is absent, or over already.
UPDATE execution_core.attempt
   SET final_at = clock_timestamp()
 WHERE run_id = $1 AND number = $2 AND final_at IS NULL
RETURNING final_at
