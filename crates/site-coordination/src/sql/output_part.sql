-- A part of a private output, which is stored so that only the part is read. $1 Site, $2 environment,
-- $3 sequence, $4 digest, $5 first byte, from 1, $6 bytes at the most.
-- No row: it is not there (any more).
SELECT substring(bytes FROM $5 FOR $6)
  FROM site_coordination.private_output
 WHERE site = $1 AND environment = $2 AND seq = $3 AND digest = $4
