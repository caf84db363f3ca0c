-- The newest sequence of each stream of a Site. $1 Site.
SELECT environment, last_seq FROM site_coordination.stream_head WHERE site = $1
