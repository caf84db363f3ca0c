//! What a change costs, with few and with many keys in force: by the buffers that PostgreSQL touches,
//! which don't depend on how busy a machine is.

use ssh_access::{API_ROLE, PROCESS_ROLE, PropagatorLimits, Watched};

use crate::support::{Fixture, changes, snapshot};

/// Puts keys in force for so many members, with one key each, as if they had been propagated.
async fn fill(fixture: &Fixture, members: u32) {
    fixture.propagate().await;
    let sql = fixture.sql().await;
    let fill = format!(
        "INSERT INTO ssh_access.member (member_id, keys)
         SELECT 'f' || n, 1 FROM generate_series(1, {members}) n;
         INSERT INTO ssh_access.member_key (key_id, member_id, public_key, fingerprint)
         SELECT 'key_' || lpad(n::text, 25, '0') || '0', 'f' || n,
                'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
                'SHA256:' || lpad(n::text, 43, '0')
           FROM generate_series(1, {members}) n;
         INSERT INTO ssh_access.site_account (site, member_id, unix_user)
         SELECT 'north-1', 'f' || n, 'u' || n FROM generate_series(1, {members}) n;
         INSERT INTO ssh_access.site_key (site, unix_user, key_id, member_id, public_key)
         SELECT 'north-1', 'u' || n, 'key_' || lpad(n::text, 25, '0') || '0', 'f' || n,
                'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
           FROM generate_series(1, {members}) n;"
    );
    sql.batch_execute(&fill).await.unwrap();
}

/// The buffers that backends of two roles have touched in the tables of the context, as of now.
async fn touched(fixture: &Fixture) -> i64 {
    let flush = "SELECT pg_stat_force_next_flush()";
    fixture.sql().await.batch_execute(flush).await.unwrap();
    fixture
        .count(
            "SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))::bigint
               FROM pg_statio_user_tables WHERE schemaname = 'ssh_access'",
        )
        .await
}

/// Ends the connections of the services: a backend that ends has told its figures.
async fn end_backends(fixture: &Fixture) {
    let end = format!(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
          WHERE datname = current_database() AND usename IN ('{}', '{}', 'ssh_access_registry')",
        API_ROLE.name, PROCESS_ROLE.name
    );
    fixture.sql().await.batch_execute(&end).await.unwrap();
}

/// The buffers of one removal from the registry to the agent's reading, with so many members in force.
async fn cost_of_a_change(members: u32) -> i64 {
    let fixture = Fixture::create().await;
    fill(&fixture, members).await;
    let keys = fixture.member("m1", 2, "alice").await;
    fixture.propagate().await;
    let feed = fixture.feed();
    let after = changes(&feed, ssh_access::Cursor::START).await.next;
    end_backends(&fixture).await;
    let before = touched(&fixture).await;
    fixture.remove(&keys[0].id).await;
    assert_eq!(fixture.propagate().await, 1);
    assert_eq!(changes(&fixture.feed(), after).await.changes.len(), 1);
    end_backends(&fixture).await;
    let cost = touched(&fixture).await - before;
    let in_force = fixture.count("SELECT count(*) FROM ssh_access.site_key").await;
    assert_eq!(in_force, i64::from(members) + 1);
    cost
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_with_a_hundred_thousand_keys_in_force_costs_as_with_ten() {
    let (few, many) = (cost_of_a_change(10).await, cost_of_a_change(100_000).await);
    assert!(few > 20, "nothing was measured: {few}");
    // An index over a hundred thousand rows is two levels higher than one over ten; nothing is read
    // that grows with the rows.
    assert!(
        many <= few * 3,
        "{few} buffers with ten keys in force, {many} with a hundred thousand"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_a_hundred_thousand_keys_is_read_once_over() {
    let fixture = Fixture::create().await;
    fill(&fixture, 100_000).await;
    end_backends(&fixture).await;
    let before = touched(&fixture).await;
    let feed = fixture.feed();
    assert_eq!(snapshot(&feed).await.0.len(), 100_000);
    end_backends(&fixture).await;
    let cost = touched(&fixture).await - before;
    // By the index: some buffers for a key, and not the whole set again for each part.
    assert!(cost < 250_000, "{cost} buffers");
}

/// A feed of so many additions and then so many removals, of other keys, whose time is not over.
async fn fill_feed(fixture: &Fixture, additions: u32, removals: u32) {
    fixture.propagate().await;
    let all = additions + removals;
    let fill = format!(
        "INSERT INTO ssh_access.site_change
                (site, seq, operation, unix_user, key_id, member_id, public_key, enforce_by, digest,
                 chain_digest)
         SELECT 'north-1', n, CASE WHEN n <= {additions} THEN 'add' ELSE 'remove' END,
                'u' || n, 'key_' || lpad(n::text, 25, '0') || '0', 'f' || n,
                CASE WHEN n <= {additions} THEN 'ssh-ed25519 AAAA' END,
                CASE WHEN n > {additions} THEN clock_timestamp() + interval '1 h' END,
                sha256(''), sha256('')
           FROM generate_series(1, {all}) n;
         UPDATE ssh_access.site_feed SET head = {all}, head_digest = sha256('');
         ANALYZE ssh_access.site_change"
    );
    fixture.sql().await.batch_execute(&fill).await.unwrap();
}

/// How far the agent is, and the buffers that it costs to see that.
async fn cost_of_a_look(fixture: &Fixture) -> (Watched, i64) {
    let propagator = fixture.propagator_of("north-1", PropagatorLimits::default());
    let lease = propagator.acquire().await.unwrap().unwrap();
    // The first look tells what it sees, and prepares the statement.
    propagator.watch(lease).await.unwrap();
    propagator.release(lease).await.unwrap();
    end_backends(fixture).await;
    let lease = propagator.acquire().await.unwrap().unwrap();
    let before = touched(fixture).await;
    let watched = propagator.watch(lease).await.unwrap();
    end_backends(fixture).await;
    (watched, touched(fixture).await - before)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_an_agent_that_never_came_costs_the_same_whatever_was_added() {
    let look = async |additions| {
        let fixture = Fixture::create().await;
        fill_feed(&fixture, additions, 3).await;
        let (watched, cost) = cost_of_a_look(&fixture).await;
        assert_eq!((watched.removals_overdue, watched.acknowledged), (0, None));
        cost
    };
    let (few, many) = (look(10).await, look(100_000).await);
    assert!(few > 3, "nothing was measured: {few}");
    assert!(many <= few + 20, "{few} buffers after ten additions, {many} after a hundred thousand");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_a_thousand_failures_reads_the_last_removals_once() {
    let fixture = Fixture::create().await;
    fill(&fixture, 100_000).await;
    fill_feed(&fixture, 100_000, 10_000).await;
    // A third could not be added and is in force, a third was removed and has time, a third is neither.
    let failures = "
        INSERT INTO ssh_access.site_ack (site, seq, chain_digest, failing, failures)
        SELECT 'north-1', 110000, sha256(''), 999,
               json_agg(json_build_object('unixUser', 'u' || n, 'reason', 'r',
                                          'keyId', 'key_' || lpad(n::text, 25, '0') || '0'))
          FROM (SELECT generate_series(1, 333) AS n UNION ALL SELECT generate_series(109668, 110000)
                UNION ALL SELECT generate_series(200001, 200333)) keys";
    fixture.sql().await.batch_execute(failures).await.unwrap();
    let (watched, cost) = cost_of_a_look(&fixture).await;
    assert_eq!((watched.removals_overdue, watched.failing), (333, 999));
    // Some for each failure, to see whether its key is in force, and some hundred for the removals.
    assert!(cost < 12_000, "{cost} buffers");
}
