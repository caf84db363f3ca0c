//! A responder that lies, and somebody who plays the responder. What they send never answers a
//! question that was not its own.

use std::time::Duration;

use beto::{AnswerError, Caller, CouldNotAsk, Decision};
use lapin::{BasicProperties, Confirmation};
use serde_json::json;

use crate::support::{ADMIN, Answerer, ask, connect, execute, node, outcome, send, setup, start};

#[tokio::test]
async fn late_repeated_and_unknown_answers_answer_nothing() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let patient = start(setup(&broker, Caller::ResourceProvisioning));
    let hurried = Duration::from_secs(2);
    let hurried = start(setup(&broker, Caller::ResourceProvisioning).with_budget(hurried));

    // Late: the question is over when its answer comes.
    let late = ask(&hurried, execute("late"));
    let asked = responder.question().await;
    assert_eq!(outcome(late).await.0, Err(CouldNotAsk::NoAnswer));
    let next = ask(&hurried, execute("next"));
    let asked_next = responder.question().await;
    responder.answer(&asked, "allow").await;
    let crossed = asked_next.answer("allow").to_string();
    responder.send(&asked, asked.properties(), crossed.as_bytes()).await;
    responder.answer(&asked_next, "deny").await;
    assert_eq!(outcome(next).await.0, Ok(Decision::Deny));

    // Twice, and the second time for the question after it, by the same id.
    let first = ask(&patient, execute("one"));
    let asked = responder.question().await;
    responder.answer(&asked, "allow").await;
    assert_eq!(outcome(first).await.0, Ok(Decision::Allow));
    let second = ask(&patient, execute("one"));
    let asked_again = responder.question().await;
    responder.answer(&asked, "allow").await;
    responder.answer(&asked_again, "deny").await;
    responder.answer(&asked_again, "allow").await;
    assert_eq!(outcome(second).await.0, Ok(Decision::Deny));

    // By an id that nobody has, and by none.
    let third = ask(&patient, execute("one"));
    let asked = responder.question().await;
    let allow = asked.answer("allow").to_string();
    let with_id = |id: &str| asked.properties().with_correlation_id(id.into());
    let without = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_type("beto.answer.v1".into())
        .with_user_id("beto".into());
    let upper = asked.correlation_id().to_uppercase();
    for properties in [with_id(&"0".repeat(32)), with_id(""), with_id(&upper), without] {
        responder.send(&asked, properties, allow.as_bytes()).await;
    }
    responder.answer(&asked, "deny").await;
    assert_eq!(outcome(third).await.0, Ok(Decision::Deny));
}

#[tokio::test]
async fn nobody_but_the_responder_can_answer() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    let asking = ask(&beto, execute("m"));
    let asked = responder.question().await;
    let allow = asked.answer("allow").to_string();
    // Who knows everything, the correlation id too, and may publish anywhere.
    let (_connection, channel) = connect(&broker, ADMIN).await;
    let nameless = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_type("beto.answer.v1".into())
        .with_correlation_id(asked.correlation_id().into());
    let named = asked.properties().with_user_id(ADMIN.into());
    for properties in [nameless, named] {
        let sent = send(&channel, &asked, properties, allow.as_bytes()).await;
        assert_eq!(sent.unwrap(), Confirmation::Ack(None));
    }
    // To claim the responder's name is refused by the broker itself.
    let forged = send(&channel, &asked, asked.properties(), allow.as_bytes()).await;
    let refused = forged.unwrap_err().to_string();
    assert!(refused.contains("user_id"), "{refused}");
    responder.answer(&asked, "deny").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
}

#[tokio::test]
async fn an_answer_that_is_none_is_no_yes() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    let padded = |length: usize| {
        move |allow: String| allow.replacen('{', &format!("{{{}", " ".repeat(length)), 1)
    };
    type Change = Box<dyn Fn(String) -> String>;
    let bodies: [(&str, Change, AnswerError); 9] = [
        ("not JSON", Box::new(|_| "allow".to_owned()), AnswerError::Json),
        ("empty", Box::new(|_| String::new()), AnswerError::Json),
        ("cut", Box::new(|allow| allow[..allow.len() - 1].to_owned()), AnswerError::Json),
        ("two", Box::new(|allow| format!("{allow}{allow}")), AnswerError::Json),
        ("no decision", Box::new(|allow| allow.replace("decision", "said")), AnswerError::Json),
        (
            "another version",
            Box::new(|allow| allow.replace(r#""version":1"#, r#""version":2"#)),
            AnswerError::Version,
        ),
        (
            "another member",
            Box::new(|allow| allow.replace(r#""member":"m""#, r#""member":"n""#)),
            AnswerError::AnotherQuestion,
        ),
        ("64 KiB and more", Box::new(padded(64 * 1024)), AnswerError::Form("it is too large")),
        ("900 KiB", Box::new(padded(900 * 1024)), AnswerError::Form("it is too large")),
    ];
    for (what, change, error) in bodies {
        let asking = ask(&beto, execute("m"));
        let asked = responder.question().await;
        let body = change(asked.answer("allow").to_string());
        responder.send(&asked, asked.properties(), body.as_bytes()).await;
        assert_eq!(outcome(asking).await.0, Err(CouldNotAsk::Answer(error)), "{what}");
    }
    for (properties, error) in [
        (json!(["text/plain", "beto.answer.v1"]), "its content type is another"),
        (json!(["application/json", "beto.answer.v2"]), "its type is another"),
        (json!(["application/json", "beto.question.v1"]), "its type is another"),
    ] {
        let asking = ask(&beto, execute("m"));
        let asked = responder.question().await;
        let text = |index: usize| properties[index].as_str().unwrap();
        let sent = asked.properties().with_content_type(text(0).into()).with_type(text(1).into());
        let allow = asked.answer("allow").to_string();
        responder.send(&asked, sent, allow.as_bytes()).await;
        let expected = CouldNotAsk::Answer(AnswerError::Form(error));
        assert_eq!(outcome(asking).await.0, Err(expected), "{properties}");
    }

    // One that would fill the memory does not even reach us: the broker refuses it.
    let asking = ask(&beto, execute("m"));
    let asked = responder.question().await;
    let huge = padded(4 * 1024 * 1024)(asked.answer("allow").to_string());
    let sent = responder.send(&asked, asked.properties(), huge.as_bytes()).await;
    assert_eq!(sent, Confirmation::Nack(None));
    responder.answer(&asked, "deny").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
}
