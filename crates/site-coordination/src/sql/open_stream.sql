-- Makes a stream where it is absent. $1 Site, $2 environment.
WITH head AS (
    INSERT INTO site_coordination.stream_head (site, environment) VALUES ($1, $2)
    ON CONFLICT DO NOTHING
    RETURNING site, environment
)
INSERT INTO site_coordination.stream_progress (site, environment)
SELECT site, environment FROM head
RETURNING environment
