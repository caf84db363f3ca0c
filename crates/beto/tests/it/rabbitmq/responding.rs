//! The answering side: what it takes, and what it leaves alone.

use beto::{Caller, Decision, EXCHANGE, Heard, Responder};
use broker::{Broker as Target, Trust};
use lapin::{BasicProperties, Channel, options::BasicPublishOptions};
use test_support::rabbitmq::Broker;

use crate::support::{ADMIN, LONG, ask, connect, execute, node, outcome, setup, start};

async fn responder(broker: &Broker) -> Responder {
    let trust = Trust::from_pem_file(&broker.ca_file()).unwrap();
    let target = Target::new(broker.tls_url("beto").parse().unwrap(), Some(trust)).unwrap();
    Responder::connect(&target, LONG).await.unwrap()
}

#[tokio::test]
async fn a_responder_answers_who_asks_and_leaves_what_it_can_not_decide() {
    let broker = node().await;
    let mut responder = responder(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    for decision in [Decision::Allow, Decision::Deny] {
        let asking = ask(&beto, execute("m"));
        let Heard::Question(asked) = responder.next().await.unwrap() else { panic!("dropped") };
        assert_eq!((asked.caller, &asked.question), (Caller::ResourceProvisioning, &execute("m")));
        responder.answer(asked, Some(decision)).await.unwrap();
        assert_eq!(outcome(asking).await.0, Ok(decision));
    }
    let undecided = ask(&beto, execute("m"));
    let Heard::Question(asked) = responder.next().await.unwrap() else { panic!("dropped") };
    responder.answer(asked, None).await.unwrap();
    // It was acknowledged: nobody is asked again.
    let asking = ask(&beto, execute("next"));
    let Heard::Question(asked) = responder.next().await.unwrap() else { panic!("dropped") };
    assert_eq!(asked.question.member().as_str(), "next");
    responder.answer(asked, Some(Decision::Deny)).await.unwrap();
    assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
    assert!(!undecided.is_finished());
}

const BODY: &str =
    r#"{"version":1,"permission":"runs.execute","member":"m","project":"p","site":"s"}"#;

async fn publish(channel: &Channel, key: &str, properties: BasicProperties, body: &[u8]) {
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish(EXCHANGE.into(), key.into(), options, body, properties);
    assert!(sent.await.unwrap().await.unwrap().is_ack());
}

#[tokio::test]
async fn what_must_not_be_answered_is_not() {
    let broker = node().await;
    let mut responder = responder(&broker).await;
    let own = format!("resource_provisioning.reply.{}", "0".repeat(32));
    let another = format!("join_tokens.reply.{}", "0".repeat(32));
    let usual = |user: &str| {
        BasicProperties::default()
            .with_content_type("application/json".into())
            .with_type("beto.question.v1".into())
            .with_user_id(user.into())
            .with_reply_to(own.as_str().into())
            .with_correlation_id("c".into())
    };
    let caller = "resource_provisioning";
    let (_one, by_caller) = connect(&broker, caller).await;
    let (_two, by_admin) = connect(&broker, ADMIN).await;
    let nameless = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_type("beto.question.v1".into())
        .with_reply_to(own.as_str().into())
        .with_correlation_id("c".into());
    let good = || usual(caller);
    let execute = "runs.execute";
    let other = BODY.replace(execute, "runs.output.view");
    let large = BODY.replacen('{', &format!("{{{}", " ".repeat(64 * 1024)), 1);
    for (channel, key, properties, body, said) in [
        (&by_admin, execute, nameless, BODY, "no caller has asked it"),
        (&by_admin, execute, usual(ADMIN), BODY, "no caller has asked it"),
        (&by_caller, execute, good().with_reply_to(another.as_str().into()), BODY, "would not go"),
        (&by_caller, execute, good().with_reply_to("beto.questions".into()), BODY, "would not go"),
        (&by_caller, execute, good().with_correlation_id("".into()), BODY, "no correlation id"),
        (&by_caller, execute, good().with_type("beto.question.v2".into()), BODY, "not the form"),
        (&by_caller, execute, good().with_content_type("text/plain".into()), BODY, "not the form"),
        (&by_caller, execute, good(), &large, "not the form"),
        (&by_caller, execute, good(), "", "no JSON object"),
        (&by_caller, execute, good(), &BODY.replace(":1", ":2"), "its version"),
        // The broker lets it through: the key is the caller's own.
        (&by_caller, execute, good(), &other, "may not ask"),
    ] {
        publish(channel, key, properties, body.as_bytes()).await;
        match responder.next().await.unwrap() {
            Heard::Dropped(refusal) => {
                assert!(refusal.to_string().contains(said), "{said}: {refusal}");
            }
            Heard::Question(_) => panic!("{said}: taken"),
        }
    }
    publish(&by_caller, execute, good(), BODY.as_bytes()).await;
    assert!(matches!(responder.next().await.unwrap(), Heard::Question(_)));
}
