//! Back-pressure: a stream takes so many commands without an ending, and not one more.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use site_coordination::EnqueueError;

use crate::support::{
    Fixture, at_once, command, commands_named, count, prove_stream, slurm, store,
};

fn full(refusal: &EnqueueError) -> Option<(u64, u32)> {
    match refusal {
        EnqueueError::StreamFull { backlog, limit } => Some((*backlog, *limit)),
        _ => None,
    }
}

#[tokio::test]
async fn a_full_stream_refuses_what_is_new_and_answers_what_it_has() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1).with_backlog(3);
    let runtime = fixture.runtime();
    let too_many = producer.enqueue_many(&slurm(), commands_named("k", 4)).await.unwrap_err();
    assert_eq!(full(&too_many), Some((0, 3)));
    let ids: Vec<_> = producer
        .enqueue_many(&slurm(), commands_named("k", 3))
        .await
        .unwrap()
        .into_iter()
        .map(|enqueued| enqueued.id)
        .collect();

    let one = producer.enqueue(&slurm(), command("new")).await.unwrap_err();
    assert_eq!(full(&one), Some((3, 3)));
    assert_eq!(
        one.to_string(),
        "the stream has 3 commands without a result and takes at most 3; enqueue again when its \
         Runtime has answered some, or void the one that is due if it is stuck"
    );
    // All or nothing, also where most of the list is there already.
    let list = [commands_named("k", 3), vec![command("new")]].concat();
    let many = producer.enqueue_many(&slurm(), list.clone()).await.unwrap_err();
    assert_eq!(full(&many), Some((3, 3)));
    assert!(!producer.enqueue(&slurm(), command("k2")).await.unwrap().new);
    let again = producer.enqueue_many(&slurm(), commands_named("k", 3)).await.unwrap();
    assert!(again.iter().all(|enqueued| !enqueued.new));
    assert_eq!(prove_stream(&fixture.sql().await, &slurm()).await, ["k1", "k2", "k3"]);

    store(&runtime, &ids[0], "1").await.unwrap();
    assert!(producer.enqueue_many(&slurm(), list).await.unwrap()[3].new);
    assert_eq!(
        full(&producer.enqueue(&slurm(), command("newer")).await.unwrap_err()),
        Some((3, 3))
    );
}

#[tokio::test]
async fn another_command_under_a_known_key_is_a_conflict_also_where_the_stream_is_full() {
    let fixture = Fixture::create().await;
    let producer = fixture.producer(1).with_backlog(1);
    producer.enqueue(&slurm(), command("a")).await.unwrap();
    let other = crate::support::command_with("a", "1");
    let list = vec![other.clone(), command("b")];
    let one = producer.enqueue(&slurm(), other).await.unwrap_err();
    let many = producer.enqueue_many(&slurm(), list).await.unwrap_err();
    for refusal in [one, many] {
        assert!(matches!(refusal, EnqueueError::KeyConflict { .. }), "{refusal:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn producers_at_once_never_pass_the_limit_while_results_come() {
    const LIMIT: u32 = 20;
    let fixture = Fixture::create().await;
    let producer = fixture.producer(32).with_backlog(LIMIT);
    let first = producer.enqueue(&slurm(), command("first")).await.unwrap();
    // Each end of a backlog above the limit would be a row here, whoever brought it about.
    let sql = fixture.sql().await;
    sql.batch_execute(&format!(
        "CREATE TABLE public.passed (backlog bigint);
         CREATE FUNCTION public.measure() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
         BEGIN
             INSERT INTO public.passed
             SELECT NEW.last_seq - done_seq FROM site_coordination.stream_progress
              WHERE NEW.last_seq - done_seq > {LIMIT};
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER measure AFTER UPDATE ON site_coordination.stream_head
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.measure()"
    ))
    .await
    .unwrap();

    let stopped = Arc::new(AtomicBool::new(false));
    let answering = tokio::spawn({
        let (runtime, reader) = (fixture.runtime(), fixture.producer(1));
        let stopped = Arc::clone(&stopped);
        async move {
            store(&runtime, &first.id, "1").await.unwrap();
            let mut done = first.seq;
            while !stopped.load(Ordering::Relaxed) {
                for next in reader.list(&slurm(), done, 1).await.unwrap() {
                    store(&runtime, &next.id, "1").await.unwrap();
                    done = next.seq;
                }
            }
        }
    });
    let answers = at_once(32, |caller| {
        let producer = producer.clone();
        async move {
            let (mut taken, mut refused) = (0, 0);
            for round in 0..30 {
                let name = format!("k{caller}-{round}-");
                let answer = if (caller + round) % 2 == 0 {
                    producer.enqueue(&slurm(), command(&name)).await.map(|_| 1)
                } else {
                    let list = commands_named(&name, 3);
                    producer.enqueue_many(&slurm(), list).await.map(|list| list.len())
                };
                match answer {
                    Ok(commands) => taken += commands,
                    Err(EnqueueError::StreamFull { backlog, limit: LIMIT }) => {
                        assert!((18..=20).contains(&backlog), "{backlog}");
                        refused += 1;
                    }
                    Err(EnqueueError::Contended) => refused += 1,
                    Err(error) => panic!("{error:?}"),
                }
            }
            (taken, refused)
        }
    })
    .await;
    stopped.store(true, Ordering::Relaxed);
    answering.await.unwrap();
    assert_eq!(count(&sql, "SELECT count(*) FROM public.passed").await, 0);
    let taken: usize = answers.iter().map(|(taken, _)| taken).sum();
    assert_eq!(prove_stream(&sql, &slurm()).await.len(), taken + 1);
    assert!(answers.iter().any(|(_, refused)| *refused > 0), "the limit was never reached");
}
