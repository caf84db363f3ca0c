//! A broker that is killed, and one where nobody answers.

use std::time::{Duration, Instant};

use beto::{
    Caller, CouldNotAsk, Decision, EXCHANGE, Health, Name, Pace, Permission, QUESTIONS, Question,
};
use lapin::{
    BasicProperties,
    options::{BasicPublishOptions, QueueBindOptions},
    types::FieldTable,
};
use test_support::eventually;

use crate::support::{
    ADMIN, AMPLE, Answerer, LONG, ask, connect, execute, node, outcome, setup, start,
};

#[tokio::test]
async fn a_killed_broker_is_no_answer_within_the_budget_and_is_used_when_it_is_back() {
    let mut broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    for _ in 0..2 {
        let asking = ask(&beto, execute("before"));
        responder.answer_next("allow").await;
        assert_eq!(outcome(asking).await.0, Ok(Decision::Allow));

        // While an answer is waited for, and after.
        let asking = ask(&beto, execute("during"));
        let _asked = responder.question().await;
        broker.kill();
        let (during, took) = outcome(asking).await;
        assert!(matches!(during, Err(CouldNotAsk::Lost(_))), "{during:?}");
        assert!(took < AMPLE, "{took:?}");
        for _ in 0..3 {
            let (after, took) = outcome(ask(&beto, execute("after"))).await;
            assert!(matches!(after, Err(CouldNotAsk::NotConnected(_))), "{after:?}");
            assert!(took < AMPLE, "{took:?}");
        }

        broker.restart().await.unwrap();
        responder = Answerer::start(&broker).await;
    }
    // The pause after a failure is a day here: it is the question that ends it.
    let asking = ask(&beto, execute("back"));
    responder.answer_next("deny").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
}

#[tokio::test]
async fn a_lasting_outage_is_told_and_its_end_too_without_a_question() {
    let mut broker = node().await;
    let pace = Pace {
        first_pause: Duration::from_millis(50),
        longest_pause: Duration::from_millis(200),
        patience: Duration::from_millis(500),
        ..Pace::default()
    };
    let beto = start(setup(&broker, Caller::JoinTokens).with_pace(pace));
    let health = beto.health();
    let now = async || Some(health.borrow().clone());
    broker.kill();
    let trouble = eventually(LONG, "the trouble to be told", async || match now().await? {
        Health::Trouble(reason) => Some(reason),
        Health::Well => None,
    })
    .await;
    assert!(!trouble.contains("hunter2"), "{trouble}");
    broker.restart().await.unwrap();
    let well = async || (now().await? == Health::Well).then_some(());
    eventually(LONG, "that all is well", well).await;
}

#[tokio::test]
async fn where_nobody_listens_answers_or_takes_questions_it_could_not_be_asked() {
    let broker = node().await;
    let budget = Duration::from_secs(4);
    let beto = start(setup(&broker, Caller::ResourceProvisioning).with_budget(budget));
    // The queue is there and nobody reads it.
    let began = Instant::now();
    assert_eq!(outcome(ask(&beto, execute("m"))).await.0, Err(CouldNotAsk::NoAnswer));
    assert!(began.elapsed() < budget * 2, "{:?}", began.elapsed());

    // It is full. What nobody took in time is gone from it by then.
    let (_connection, channel) = connect(&broker, ADMIN).await;
    let options = BasicPublishOptions::default();
    for _ in 0..1000 {
        let properties = BasicProperties::default();
        let sent = channel.basic_publish("".into(), QUESTIONS.into(), options, b"x", properties);
        assert!(sent.await.unwrap().await.unwrap().is_ack());
    }
    assert_eq!(outcome(ask(&beto, execute("m"))).await.0, Err(CouldNotAsk::NotTaken));

    // It is not there: the broker says so at once.
    broker.control(&["delete_queue", QUESTIONS]).await.unwrap();
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    let asking: Vec<_> = (0..32).map(|_| ask(&beto, execute("m"))).collect();
    for asking in asking {
        let (nobody, took) = outcome(asking).await;
        assert_eq!(nobody, Err(CouldNotAsk::NobodyListens));
        assert!(took < AMPLE / 2, "{took:?}");
    }
}

/// Returns and confirms of many questions come together.
#[tokio::test]
async fn a_question_that_nobody_takes_says_nothing_about_those_beside_it() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let (_connection, channel) = connect(&broker, ADMIN).await;
    let none = FieldTable::default;
    let options = QueueBindOptions::default();
    let [reads, writes] = [Permission::RepositoriesRead, Permission::RepositoriesWrite];
    let bound = channel.queue_bind(
        QUESTIONS.into(),
        EXCHANGE.into(),
        reads.as_str().into(),
        options,
        none(),
    );
    bound.await.unwrap();
    let unbound = channel.queue_unbind(QUESTIONS.into(), EXCHANGE.into(), "#".into(), none());
    unbound.await.unwrap();
    let beto = start(setup(&broker, Caller::SourceControl));
    let name = |text: &str| Name::parse(text).unwrap();
    for _ in 0..5 {
        let asking: Vec<_> = (0..64)
            .map(|number| {
                let permission = if number % 2 == 0 { reads } else { writes };
                let question =
                    Question::in_project(permission, name("m"), name("p"), name("s")).unwrap();
                ask(&beto, question)
            })
            .collect();
        let mut asked = Vec::new();
        for _ in 0..32 {
            asked.push(responder.question().await);
        }
        // When everything is confirmed or returned, and not before.
        for (_, written) in asking.iter().enumerate().filter(|(number, _)| number % 2 == 1) {
            eventually(LONG, "a return", async || written.is_finished().then_some(())).await;
        }
        for asked in asked {
            responder.answer(&asked, "allow").await;
        }
        for (number, asking) in asking.into_iter().enumerate() {
            let expected =
                if number % 2 == 0 { Ok(Decision::Allow) } else { Err(CouldNotAsk::NobodyListens) };
            assert_eq!(outcome(asking).await.0, expected, "{number}");
        }
    }
}

#[tokio::test]
async fn a_broker_that_confirms_nothing_is_left_and_asked_again() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let budget = Duration::from_secs(4);
    let beto = start(setup(&broker, Caller::ResourceProvisioning).with_budget(budget));
    let asking = ask(&beto, execute("m"));
    let asked = responder.question().await;
    let first_queue = asked.reply_to().to_owned();
    responder.answer(&asked, "allow").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Allow));
    // Out of memory, as it believes, it reads no more of what is published.
    broker.control(&["set_vm_memory_high_watermark", "0.00001"]).await.unwrap();
    let unconfirmed = async || {
        // The node hears of its memory now and then.
        let (told, _) = outcome(ask(&beto, execute("m"))).await;
        (told != Err(CouldNotAsk::NoAnswer)).then_some(told)
    };
    let told = eventually(LONG, "a blocked broker", unconfirmed).await;
    assert_eq!(told, Err(CouldNotAsk::NotConfirmed));
    broker.control(&["set_vm_memory_high_watermark", "0.4"]).await.unwrap();
    let answered = async || {
        let asking = ask(&beto, execute("again"));
        let asked = loop {
            let asked = responder.question().await;
            // Those before it that were taken after all.
            if asked.question().member().as_str() == "again" {
                break asked;
            }
        };
        responder.answer(&asked, "deny").await;
        let (told, _) = outcome(asking).await;
        told.ok().map(|decision| (decision, asked.reply_to().to_owned()))
    };
    let (decision, queue) = eventually(LONG, "an answer", answered).await;
    assert_eq!(decision, Decision::Deny);
    assert_ne!(queue, first_queue, "the silent connection is still in use");
    let ended = async || {
        let users = broker.control(&["list_connections", "user"]).await.unwrap();
        (users.lines().filter(|user| *user == "resource_provisioning").count() == 1).then_some(())
    };
    eventually(Duration::from_secs(20), "the silent connection to end", ended).await;
}
