-- A stream with so many answered commands. The keys of a benchmark's loads are none of these.
BEGIN;
-- No foreign key is checked: each row is written right after the one that it needs.
SET LOCAL session_replication_role = replica;
INSERT INTO site_coordination.stream_head (site, environment)
VALUES (:site, :environment) ON CONFLICT DO NOTHING;
INSERT INTO site_coordination.stream_progress (site, environment)
VALUES (:site, :environment) ON CONFLICT DO NOTHING;
WITH RECURSIVE chain (seq, digest, chain_digest) AS (
    SELECT 0::bigint, NULL::bytea, decode(repeat('00', 32), 'hex')
    UNION ALL
    SELECT chain.seq + 1, own.digest, sha256(chain.chain_digest || own.digest)
      FROM chain, LATERAL (SELECT sha256(int8send(chain.seq + 1)) AS digest OFFSET 0) own
     WHERE chain.seq < :commands
)
INSERT INTO site_coordination.command
       (site, environment, seq, command_id, producer_key, kind, digest, chain_digest)
SELECT :site, :environment, seq, 'cmd_' || md5(:site || seq), 'history/' || seq, 'job.submit', digest,
       chain_digest
  FROM chain WHERE seq > 0;
INSERT INTO site_coordination.command_body (site, environment, seq, body)
SELECT site, environment, seq, '{"script":"' || repeat('#', 1011) || '"}'
  FROM site_coordination.command WHERE site = :site AND environment = :environment;
INSERT INTO site_coordination.command_result (site, environment, seq, digest, outcome, generation)
SELECT site, environment, seq, digest, 'succeeded', 1
  FROM site_coordination.command WHERE site = :site AND environment = :environment;
INSERT INTO site_coordination.result_body (site, environment, seq, body)
SELECT site, environment, seq, '{"outcome":"succeeded","output":{"log":"' || repeat('#', 157) || '"}}'
  FROM site_coordination.command WHERE site = :site AND environment = :environment;
UPDATE site_coordination.stream_head h SET last_seq = last.seq, last_digest = last.chain_digest
  FROM site_coordination.command last
 WHERE h.site = :site AND h.environment = :environment AND last.site = :site
   AND last.environment = :environment AND last.seq = :commands;
UPDATE site_coordination.stream_progress SET done_seq = :commands
 WHERE site = :site AND environment = :environment;
COMMIT;
