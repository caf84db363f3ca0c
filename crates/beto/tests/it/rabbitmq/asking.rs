//! An honest responder.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use beto::{Caller, CouldNotAsk, Decision, Name, Permission, Question, ReplyQueue};
use serde_json::json;
use tokio::sync::Barrier;

use crate::support::{
    AMPLE, Answerer, LONG, ask, execute, node, outcome, project, property, setup, start,
};

#[tokio::test]
async fn a_question_is_what_the_page_says_and_its_answer_is_the_decision() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    let mut ids = BTreeSet::new();
    for (decision, word) in [(Decision::Allow, "allow"), (Decision::Deny, "deny")] {
        let asking = ask(&beto, execute("m-17"));
        let asked = responder.question().await;
        assert_eq!(
            asked.body(),
            json!({ "version": 1, "permission": "runs.execute", "member": "m-17", "project": "p-4", "site": "gpu-lab" })
        );
        let (delivery, properties) = (&asked.0, &asked.0.properties);
        assert_eq!(delivery.exchange.as_str(), "beto.query");
        assert_eq!(delivery.routing_key.as_str(), "runs.execute");
        assert_eq!(property(properties.content_type()), "application/json");
        assert_eq!(property(properties.kind()), "beto.question.v1");
        assert_eq!(property(properties.user_id()), "resource_provisioning");
        assert_eq!(*properties.delivery_mode(), Some(1));
        assert!(properties.timestamp().unwrap() > 1_700_000_000);
        let expiration: u128 = property(properties.expiration()).parse().unwrap();
        assert!((1..=AMPLE.as_millis()).contains(&expiration), "{expiration}");
        let reply_to = ReplyQueue::of(Caller::ResourceProvisioning, asked.reply_to());
        assert!(reply_to.is_some(), "{}", asked.reply_to());
        for id in [asked.correlation_id(), property(properties.message_id())] {
            let digits = id.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(id.len() == 32 && digits && ids.insert(id.to_owned()), "{id}");
        }
        responder.answer(&asked, word).await;
        assert_eq!(outcome(asking).await.0, Ok(decision));
    }
}

#[tokio::test]
async fn each_caller_asks_for_its_own_permissions_and_for_no_other() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let name = |text: &str| Name::parse(text).unwrap();
    for caller in Caller::ALL {
        let beto = start(setup(&broker, caller));
        for permission in Permission::ALL {
            let question = Question::in_project(permission, name("m"), name("p"), name("s"))
                .unwrap_or_else(|| Question::manages_site(name("m"), name("t"), name("s")));
            let asking = ask(&beto, question.clone());
            if caller.permissions().contains(&permission) {
                let asked = responder.question().await;
                assert_eq!(asked.question(), question);
                responder.answer(&asked, "allow").await;
                assert_eq!(outcome(asking).await.0, Ok(Decision::Allow));
            } else {
                assert_eq!(outcome(asking).await.0, Err(CouldNotAsk::NotOurs { caller }));
            }
        }
    }
}

#[tokio::test]
async fn thirty_two_at_once_share_a_connection_and_each_gets_its_own_answer() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    let barrier = Arc::new(Barrier::new(32));
    let asking: Vec<_> = (0..32)
        .map(|number| {
            let (beto, barrier) = (Arc::clone(&beto), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                beto.ask(&execute(&format!("m-{number}"))).await
            })
        })
        .collect();
    let mut questions = Vec::new();
    for _ in 0..32 {
        questions.push(responder.question().await);
    }
    let queues: BTreeSet<_> = questions.iter().map(|asked| asked.reply_to()).collect();
    assert_eq!(queues.len(), 1, "{queues:?}");
    // In another order than they came in.
    for asked in questions.iter().rev() {
        let member = asked.question().member().as_str().to_owned();
        let even = member.trim_start_matches("m-").parse::<u32>().unwrap().is_multiple_of(2);
        assert_eq!(project(&asked.question()), "p-4");
        responder.answer(asked, if even { "allow" } else { "deny" }).await;
    }
    for (number, asking) in asking.into_iter().enumerate() {
        let expected = if number % 2 == 0 { Decision::Allow } else { Decision::Deny };
        assert_eq!(outcome(asking).await.0, Ok(expected), "{number}");
    }
}

#[tokio::test]
async fn a_slow_responder_costs_its_question_and_no_more_than_the_budget() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let budget = Duration::from_secs(3);
    let beto = start(setup(&broker, Caller::ResourceProvisioning).with_budget(budget));
    let warm = ask(&beto, execute("first"));
    responder.answer_next("allow").await;
    let _connected = outcome(warm).await;
    let began = Instant::now();
    let asking = ask(&beto, execute("slow"));
    let asked = responder.question().await;
    assert_eq!(outcome(asking).await.0, Err(CouldNotAsk::NoAnswer));
    let took = began.elapsed();
    assert!(budget <= took && took < budget * 2, "{took:?}");
    responder.answer(&asked, "allow").await;
    let asking = ask(&beto, execute("next"));
    responder.answer_next("deny").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
}

/// Who asked may leave: the question after it is not touched.
#[tokio::test]
async fn a_caller_that_leaves_leaves_nothing_behind() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    for _ in 0..20 {
        let asking = ask(&beto, execute("gone"));
        let asked = responder.question().await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        responder.answer(&asked, "allow").await;
    }
    let asking = ask(&beto, execute("there"));
    responder.answer_next("deny").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
    // With the last of them the connection ends.
    drop(beto);
    test_support::eventually(LONG, "the reply queue to go", async || {
        let queues = broker.control(&["list_queues", "name"]).await.unwrap();
        (!queues.contains(".reply.")).then_some(())
    })
    .await;
}
