-- What a Run of a Site belongs to. $1 Run, $2 Site.
-- No row: there is none, or it is of another Site.
SELECT project_id, environment
  FROM execution_core.run
 WHERE run_id = $1 AND site = $2
