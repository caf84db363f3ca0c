-- Every stream.
SELECT site, environment FROM site_coordination.stream_head ORDER BY site, environment
