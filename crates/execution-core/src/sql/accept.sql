-- Accepts a Run. $1 Run, $2 Project, $3 member, $4 Site, $5 environment, $6 deadline; of the
-- repository $7 instance, $8 Project there, $9 path, $10 ref, $11 commit; $12 material.
-- No row: there is a Run of this id; who asks reads it in another statement, as this one's snapshot
-- may be older than it.
INSERT INTO execution_core.run
       (run_id, project_id, member_id, site, environment, deadline, repository_instance,
        repository_project_id, repository_path, repository_ref, repository_commit, material)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (run_id) DO NOTHING
RETURNING accepted_at
