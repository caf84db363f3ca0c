-- A hint to the listeners of a stream's Site. $1 channel, $2 what it says.
-- Losing it costs a tick, so its commit does not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true) FROM pg_notify($1, $2)
