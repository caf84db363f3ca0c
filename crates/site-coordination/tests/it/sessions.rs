//! Sessions: a stream is taken over by comparison, once for each generation, and a superseded session
//! stays refused.

use std::sync::Arc;

use site_coordination::{
    Digest, Environment, OpenSessionError, Opened, OpenedSession, PollError, PollRequest,
    RuntimeSide, SessionId, StoreResultError, Writer,
};
use tokio_postgres::Client;

use crate::support::{
    Fixture, SITE, SLURM, after, at_once, command, count, generation, poll, seq, session, store,
    store_as, stream, taken_over, writer,
};

type Answer = Result<(OpenedSession, Opened), OpenSessionError>;

async fn open(runtime: &RuntimeSide, id: &SessionId, expected: i64) -> Answer {
    runtime.open_session(SLURM, id.clone(), generation(expected)).await
}

fn named(name: &str) -> SessionId {
    SessionId::parse(&format!("session-{name:-<16}")).unwrap()
}

/// The events of the Site as `seq type environment subject data`.
async fn events(sql: &Client) -> Vec<String> {
    let query = "SELECT format('%s %s %s %s %s', seq, type, environment, subject, data::jsonb)
                   FROM site_coordination.event WHERE site = $1 ORDER BY seq";
    sql.query(query, &[&SITE]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_session_takes_the_stream_over_and_says_where_to_go_on() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(3).await;
    let runtime = fixture.runtime();
    store(&runtime, &ids[0], "1").await.unwrap();
    let digest = poll(&runtime, after(1)).await.unwrap().next_digest;
    let at_one = poll(&runtime, PollRequest { limit: 1, ..after(0) }).await.unwrap().next_digest;
    assert_ne!(digest, at_one);

    let (opened, now) = open(&runtime, &session(2), 1).await.unwrap();
    assert_eq!(now, Opened::New);
    assert_eq!((opened.session_id.clone(), opened.generation), (session(2), generation(2)));
    assert_eq!((opened.done_seq, opened.last_seq), (seq(1), seq(3)));
    assert_eq!(opened.done_digest, at_one);
    assert_eq!(opened.writer(), writer(2));
}

#[tokio::test]
async fn the_same_session_again_gets_its_generation_and_the_state_as_it_is_now() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(2).await;
    let runtime = fixture.runtime();
    let (first, _) = open(&runtime, &session(2), 1).await.unwrap();
    store_as(&runtime, &writer(2), &ids[0], "1").await.unwrap();
    // Whatever it expects now: it has what it asked for.
    for expected in [1, 2, 9] {
        let (again, now) = open(&runtime, &session(2), expected).await.unwrap();
        assert_eq!(now, Opened::Same);
        assert_eq!(again.generation, first.generation);
        assert_eq!((again.done_seq, again.last_seq), (seq(1), seq(2)));
    }
    assert_eq!(events(&fixture.sql().await).await.len(), 1);
}

#[tokio::test]
async fn a_lost_comparison_tells_the_generation_in_either_direction() {
    let fixture = Fixture::create().await;
    let runtime = fixture.runtime();
    taken_over(&runtime, 2).await;
    taken_over(&runtime, 3).await;
    for expected in [1, 2, 4, i64::MAX] {
        let refusal = open(&runtime, &named("other"), expected).await.unwrap_err();
        assert!(
            matches!(refusal, OpenSessionError::StaleGeneration { current } if current == generation(3)),
            "{refusal:?}"
        );
    }
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.session").await, 2);
}

#[tokio::test]
async fn a_superseded_session_is_refused_for_ever() {
    let fixture = Fixture::create().await;
    let runtime = fixture.runtime();
    for number in 2..6 {
        taken_over(&runtime, number).await;
        for old in 2..number {
            // Also with the right expectation.
            for expected in [old - 1, number] {
                let refusal = open(&runtime, &session(old), expected).await.unwrap_err();
                assert!(
                    matches!(refusal, OpenSessionError::Superseded { current } if current == generation(number)),
                    "{refusal:?}"
                );
            }
        }
    }
    let ended = "SELECT count(*) FROM site_coordination.session
                  WHERE (superseded_at IS NULL) = (generation = 5)";
    assert_eq!(count(&fixture.sql().await, ended).await, 4);
}

#[tokio::test]
async fn a_session_opens_a_stream_that_has_no_command_yet() {
    let fixture = Fixture::create().await;
    let runtime = fixture.runtime();
    let refusal = open(&runtime, &session(2), 2).await.unwrap_err();
    assert!(
        matches!(refusal, OpenSessionError::StaleGeneration { current } if current == generation(1)),
        "{refusal:?}"
    );
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.stream_head").await, 0);

    let (opened, now) = open(&runtime, &session(2), 1).await.unwrap();
    assert_eq!(now, Opened::New);
    assert_eq!((opened.done_seq, opened.last_seq), (seq(0), seq(0)));
    assert_eq!(opened.done_digest, Digest::ZERO);
    // Other streams stay in generation 1, and the first command finds the stream.
    fixture.filled(1).await;
    let request = PollRequest { writer: writer(2), ..after(0) };
    assert_eq!(poll(&runtime, request).await.unwrap().commands.len(), 1);
    let k8s = stream(SITE, Environment::K8s);
    fixture.producer(1).enqueue(&k8s, command("k8s")).await.unwrap();
    let page = runtime.poll(Environment::K8s, after(0), std::future::pending()).await.unwrap();
    assert_eq!(page.commands.len(), 1);
}

#[tokio::test]
async fn an_older_generation_neither_reads_nor_writes_any_more() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    taken_over(&runtime, 2).await;
    let refusal = poll(&runtime, after(0)).await.unwrap_err();
    assert!(
        matches!(refusal, PollError::StaleGeneration { current } if current == generation(2)),
        "{refusal:?}"
    );
    let refusal = store(&runtime, &ids[0], "1").await.unwrap_err();
    assert!(
        matches!(refusal, StoreResultError::StaleGeneration { current } if current == generation(2)),
        "{refusal:?}"
    );
}

/// After a restore two sessions can have had one generation.
#[tokio::test]
async fn another_session_of_the_same_generation_is_a_stale_one() {
    let fixture = Fixture::create().await;
    let ids = fixture.filled(1).await;
    let runtime = fixture.runtime();
    taken_over(&runtime, 2).await;
    let other = Writer::new(generation(2), Some(named("other"))).unwrap();
    let refusal =
        poll(&runtime, PollRequest { writer: other.clone(), ..after(0) }).await.unwrap_err();
    assert!(matches!(refusal, PollError::StaleGeneration { .. }), "{refusal:?}");
    let refusal = store_as(&runtime, &other, &ids[0], "1").await.unwrap_err();
    assert!(matches!(refusal, StoreResultError::StaleGeneration { .. }), "{refusal:?}");
    store_as(&runtime, &writer(2), &ids[0], "1").await.unwrap();
}

#[test]
fn only_generation_one_has_no_session() {
    assert_eq!(Writer::new(generation(1), None).unwrap(), Writer::FIRST);
    Writer::new(generation(1), Some(session(2))).unwrap_err();
    Writer::new(generation(2), None).unwrap_err();
    Writer::new(generation(2), Some(session(2))).unwrap();
}

#[tokio::test]
async fn each_session_is_one_event_of_its_site() {
    let fixture = Fixture::create().await;
    let runtime = fixture.runtime();
    taken_over(&runtime, 2).await;
    runtime.open_session(Environment::K8s, named("k8s"), generation(1)).await.unwrap();
    let other = fixture.runtime_of("south-1", 1);
    other.open_session(SLURM, session(2), generation(1)).await.unwrap();
    open(&runtime, &named("late"), 1).await.unwrap_err();
    taken_over(&runtime, 3).await;
    let event = |n: u32, environment: &str, generation: u32, id: &SessionId| {
        let id = id.as_str();
        format!(
            "{n} commands.session.opened {environment} {id} {{\"site\": \"{SITE}\", \
             \"sessionId\": \"{id}\", \"generation\": {generation}, \
             \"environment\": \"{environment}\"}}"
        )
    };
    assert_eq!(
        events(&fixture.sql().await).await,
        [
            event(1, "slurm", 2, &session(2)),
            event(2, "k8s", 2, &named("k8s")),
            event(3, "slurm", 3, &session(3)),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_sessions_with_one_expectation_exactly_one_wins() {
    const ROUNDS: i64 = 12;
    let fixture = Fixture::create().await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 32));
    for round in 1..=ROUNDS {
        let answers = at_once(32, |caller| {
            let runtime = Arc::clone(&runtime);
            async move { open(&runtime, &named(&format!("{round}-{caller}")), round).await }
        })
        .await;
        let mut winners = 0;
        for answer in answers {
            match answer {
                Ok((opened, now)) => {
                    assert_eq!((opened.generation, now), (generation(round + 1), Opened::New));
                    winners += 1;
                }
                Err(OpenSessionError::StaleGeneration { current }) => {
                    assert_eq!(current, generation(round + 1));
                }
                Err(error) => panic!("a false answer: {error:?}"),
            }
        }
        assert_eq!(winners, 1);
    }
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.session").await, ROUNDS);
    assert_eq!(events(&sql).await.len(), usize::try_from(ROUNDS).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_session_from_everybody_is_one_generation() {
    const ROUNDS: i64 = 12;
    let fixture = Fixture::create().await;
    let runtime = Arc::new(fixture.runtime_of(SITE, 32));
    for round in 1..=ROUNDS {
        let answers = at_once(32, |_| {
            let runtime = Arc::clone(&runtime);
            async move { open(&runtime, &session(round + 1), round).await.unwrap() }
        })
        .await;
        assert!(answers.iter().all(|(opened, _)| opened.generation == generation(round + 1)));
        assert_eq!(answers.iter().filter(|(_, now)| *now == Opened::New).count(), 1);
    }
    let sql = fixture.sql().await;
    assert_eq!(count(&sql, "SELECT count(*) FROM site_coordination.session").await, ROUNDS);
}
