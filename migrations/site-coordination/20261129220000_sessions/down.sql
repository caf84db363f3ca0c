-- Takes back what `up.sql` adds, with what it holds. The roles and their other rights stay.
REVOKE ALL ON ALL TABLES IN SCHEMA site_coordination FROM site_coordination_keeper;
REVOKE ALL ON SCHEMA site_coordination FROM site_coordination_keeper;
REVOKE INSERT (site, environment) ON stream_head, stream_progress FROM site_coordination_api;
REVOKE UPDATE (generation) ON stream_progress FROM site_coordination_api;
REVOKE UPDATE (done_seq) ON stream_progress FROM site_coordination_producer;

DROP TABLE event_relay, event, event_counter, private_output, command_void, command_cancel, session;

ALTER TABLE command_result DROP COLUMN output_digest;
ALTER TABLE command DROP COLUMN not_after;
ALTER TABLE stream_progress DROP COLUMN session_id;
ALTER TABLE stream_head DROP COLUMN cancel_rev, DROP COLUMN trimmed_seq;
