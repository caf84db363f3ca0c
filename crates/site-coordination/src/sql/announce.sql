-- Hints to the listeners of streams' Sites. $1 channels, $2 what each says.
-- All in one transaction: each that notifies wakes every listener of the database, whatever its channel.
-- Losing them costs a tick, so the commit does not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true)
  FROM unnest($1, $2) AS hint (channel, payload), pg_notify(hint.channel, hint.payload)
