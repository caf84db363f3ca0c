-- Releases a binding. $1 its id. It waits as `retain.sql` does.
-- No row: it is absent, or released already.
WITH alone AS MATERIALIZED (
    SELECT binding_id, pg_advisory_xact_lock(hashtextextended(site || ' ' || member_id, 0))
      FROM resource_provisioning.native_binding
     WHERE binding_id = $1
)
UPDATE resource_provisioning.native_binding b
   SET released_at = clock_timestamp()
  FROM alone
 WHERE b.binding_id = alone.binding_id AND b.released_at IS NULL
RETURNING b.binding_id
