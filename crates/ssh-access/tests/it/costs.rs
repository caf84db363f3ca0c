//! What a change costs, with few and with many keys in force: by the buffers that PostgreSQL touches,
//! which don't depend on how busy a machine is.

use ssh_access::{API_ROLE, PROCESS_ROLE};

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
