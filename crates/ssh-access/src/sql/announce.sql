-- Hints on channels. $1 channels.
-- Losing them costs a tick, so the commit does not wait for the disk.
SELECT set_config('synchronous_commit', 'off', true)
  FROM unnest($1) AS hint (channel), pg_notify(hint.channel, '')
