//! The state of streams in one cheap read.

use site_coordination::{Environment, Generation, SiteId};
use tokio_postgres::Client;

use crate::support::{Fixture, SITE, command, count, seq, slurm, store, stream};

#[tokio::test]
async fn the_status_tells_of_each_stream_where_it_stands() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1);
    assert!(producer.status(None).await.unwrap().is_empty());
    let ids = fixture.filled(3).await;
    let idle = stream(SITE, Environment::K8s);
    let elsewhere = stream("north-2", Environment::K8s);
    for stream in [&idle, &elsewhere] {
        producer.enqueue(stream, command("k1")).await.unwrap();
    }
    let k1 = producer.list(&idle, seq(0), 1).await.unwrap().remove(0).id;
    let note = site_coordination::VoidNote::parse("x").unwrap();
    producer.void(&idle, &k1, &note).await.unwrap();
    store(&fixture.runtime(), &ids[0], "1").await.unwrap();
    producer.cancel(&slurm(), &ids[2]).await.unwrap();
    let sql = fixture.sql().await;
    sql.batch_execute(
        "SET search_path = site_coordination;
         UPDATE command SET created_at = clock_timestamp() - interval '90 s' WHERE seq = 2;
         INSERT INTO session (site, environment, generation, session_id, superseded_at)
         VALUES ('north-1', 'slurm', 2, 'the-earlier-session', clock_timestamp());
         INSERT INTO session (site, environment, generation, session_id, opened_at)
         VALUES ('north-1', 'slurm', 3, 'the-current-session', '2026-01-01Z');
         UPDATE stream_progress SET generation = 3, session_id = 'the-current-session'
          WHERE site = 'north-1' AND environment = 'slurm';
         UPDATE stream_head SET trimmed_seq = 1 WHERE environment = 'slurm'",
    )
    .await
    .unwrap();

    let all = producer.status(None).await.unwrap();
    let streams: Vec<_> = all.iter().map(|status| &status.stream).collect();
    assert_eq!(streams, [&idle, &slurm(), &elsewhere]);
    let one = producer.status(Some(&SiteId::parse("north-2").unwrap())).await.unwrap();
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].stream, elsewhere);
    assert_eq!((one[0].generation, one[0].due.unwrap().seq), (Generation::FIRST, seq(1)));
    assert!(one[0].session.is_none());

    let (ended, busy) = (&all[0], &all[1]);
    assert_eq!((ended.last_seq, ended.done_seq, ended.due), (seq(1), seq(1), None));
    assert_eq!((busy.last_seq, busy.done_seq), (seq(3), seq(1)));
    let due = busy.due.unwrap();
    assert_eq!(due.seq, seq(2));
    assert!((90..150).contains(&due.age_seconds), "{due:?}");
    assert_eq!(busy.generation.get(), 3);
    let session = busy.session.as_ref().unwrap();
    assert_eq!(session.id.as_str(), "the-current-session");
    assert_eq!(session.opened_at.to_rfc3339(), "2026-01-01T00:00:00+00:00");
    assert_eq!((busy.cancel_rev, busy.trimmed_seq), (1, seq(1)));
}

/// Streams with a long history each.
const FILL: &str = "
SET search_path = site_coordination;
INSERT INTO stream_head (site, environment, last_seq)
SELECT 'site-' || s, 'slurm', 500 FROM generate_series(1, 40) s;
INSERT INTO stream_progress (site, environment, done_seq)
SELECT 'site-' || s, 'slurm', 250 FROM generate_series(1, 40) s;
INSERT INTO command (site, environment, seq, command_id, producer_key, kind, digest, chain_digest)
SELECT 'site-' || s, 'slurm', n, 'cmd_' || lpad((s * 1000 + n)::text, 32, '0'), 'k' || n, 'job',
       sha256('x'), sha256('x') FROM generate_series(1, 40) s, generate_series(1, 500) n;
ANALYZE";

#[tokio::test]
async fn the_status_reads_one_command_a_stream_however_long_it_is() {
    let fixture = Fixture::create().await;
    let filler = fixture.sql().await;
    filler.batch_execute(FILL).await.unwrap();
    drop(filler);
    let sql = fixture.sql().await;
    let filled = "SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'command'";
    counted(&sql, filled, 20_000).await;
    let read = "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::bigint
                  FROM pg_stat_user_tables WHERE relname = 'command'";
    let before = count(&sql, read).await;
    let producer = fixture.producer(1);
    for _ in 0..8 {
        assert_eq!(producer.status(None).await.unwrap().len(), 40);
    }
    drop(producer);
    counted(&sql, read, before + 8 * 40).await;
    let rows = count(&sql, read).await - before;
    assert!(rows < 8 * 80, "eight looks at forty streams read {rows} commands");
}

/// Waits until the server has counted so many: it does when a session ends.
async fn counted(sql: &Client, query: &str, at_least: i64) {
    test_support::eventually(crate::support::LONG, "the server's counts", async || {
        (count(sql, query).await >= at_least).then_some(())
    })
    .await;
}
