-- A Run with its Attempts in order, and the time now. $1 Run; $2 Site and $3 environment, or null
-- for a Run of any place.
-- No row: there is none, or it is of another place.
SELECT r.run_id, r.project_id, r.member_id, r.site, r.environment,
       r.repository_instance, r.repository_project_id, r.repository_path, r.repository_ref,
       r.repository_commit,
       r.deadline, r.material, r.accepted_at, r.cancelled_at,
       a.numbers, a.submitted, a.final,
       clock_timestamp()
  FROM execution_core.run r,
       LATERAL (
           SELECT coalesce(array_agg(number ORDER BY number), '{}') AS numbers,
                  coalesce(array_agg(submitted_at ORDER BY number), '{}') AS submitted,
                  coalesce(array_agg(final_at ORDER BY number), '{}') AS final
             FROM execution_core.attempt
            WHERE run_id = $1
       ) a
 WHERE r.run_id = $1
   AND ($2 IS NULL OR r.site = $2) AND ($3 IS NULL OR r.environment = $3)
