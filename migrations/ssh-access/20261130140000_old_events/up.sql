-- The process takes old events out of its outbox.
GRANT DELETE ON event TO ssh_access_process;
