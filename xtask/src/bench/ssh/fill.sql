-- So many members, each with an ed25519 key and a user of the Site, as the registry stores them.
BEGIN;
CREATE TEMPORARY TABLE made ON COMMIT DROP AS
SELECT n, 'm' || n AS member_id, 'u' || lpad(n::text, 7, '0') AS unix_user,
       -- The type and the key, each with its length before it.
       decode('0000000b', 'hex') || 'ssh-ed25519'::bytea || decode('00000020', 'hex')
           || sha256(int8send(n)) AS blob
  FROM generate_series(1, :keys::bigint) n;
INSERT INTO ssh_access.member (member_id, keys) SELECT member_id, 1 FROM made;
INSERT INTO ssh_access.member_key (key_id, member_id, public_key, fingerprint)
-- In no order, as ids are.
SELECT 'key_' || left(md5(n::text), 25) || '0', member_id,
       'ssh-ed25519 ' || encode(blob, 'base64'),
       'SHA256:' || rtrim(encode(sha256(blob), 'base64'), '=')
  FROM made;
INSERT INTO ssh_access.site_account (site, member_id, unix_user)
SELECT :site, member_id, unix_user FROM made;
INSERT INTO ssh_access.changed_member (member_id) SELECT member_id FROM made;
COMMIT;
