-- Which commands a Run has, for who reads its private output. It does not begin with the stream: a
-- search by a place of the stream must never take it for the key of the table.
CREATE INDEX command_of_run ON command (run_id, seq) WHERE run_id IS NOT NULL;
