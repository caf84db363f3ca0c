//! A reply queue that is deleted, and a right that is taken away.

use std::time::Duration;

use beto::{Caller, CouldNotAsk, Decision};
use broker::{Broker as Target, Trust};
use test_support::{TestCa, eventually};

use crate::support::{Answerer, LONG, PASSWORD, ask, execute, node, outcome, setup, start};

#[tokio::test]
async fn a_reply_queue_that_is_deleted_costs_the_questions_that_wait_and_no_other() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    let asking = ask(&beto, execute("m"));
    let asked = responder.question().await;
    broker.control(&["delete_queue", asked.reply_to()]).await.unwrap();
    let (lost, _) = outcome(asking).await;
    assert_eq!(lost, Err(CouldNotAsk::Lost("the broker has ended the reply queue".to_owned())));
    // The answer to it finds no queue, and none to another question.
    responder.answer(&asked, "allow").await;
    let asking = ask(&beto, execute("m"));
    let next = responder.question().await;
    assert_ne!(next.reply_to(), asked.reply_to());
    responder.answer(&next, "deny").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
}

#[tokio::test]
async fn a_right_that_is_taken_away_ends_the_asking_until_it_is_given_back() {
    let broker = node().await;
    let mut responder = Answerer::start(&broker).await;
    let beto = start(setup(&broker, Caller::ResourceProvisioning));
    let asking = ask(&beto, execute("m"));
    responder.answer_next("allow").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Allow));

    let own = r"^resource_provisioning\.reply\..*$";
    let rights =
        |write: &'static str| ["set_permissions", "resource_provisioning", own, write, own];
    broker.control(&rights("^$")).await.unwrap();
    // The broker remembers for a moment what a channel may do.
    let refused = async || {
        let mut asking = ask(&beto, execute("m"));
        tokio::select! {
            told = &mut asking => Some(told.unwrap()),
            asked = responder.question() => {
                responder.answer(&asked, "deny").await;
                assert_eq!(outcome(asking).await.0, Ok(Decision::Deny));
                // It forgets when nothing happens on the channel for more than a second.
                tokio::time::sleep(Duration::from_millis(1500)).await;
                None
            }
        }
    };
    let told = eventually(LONG, "the right to be gone", refused).await;
    let Err(CouldNotAsk::Lost(reason)) = &told else { panic!("{told:?}") };
    assert!(reason.contains("ACCESS_REFUSED"), "{reason}");

    broker.control(&rights(r"^beto\.query$")).await.unwrap();
    let asking = ask(&beto, execute("m"));
    responder.answer_next("allow").await;
    assert_eq!(outcome(asking).await.0, Ok(Decision::Allow));
}

#[tokio::test]
async fn who_is_refused_is_told_why_without_the_password() {
    let broker = node().await;
    let caller = Caller::SourceControl;
    let url = broker.tls_url(caller.user());
    let trusted = || Some(Trust::from_pem_file(&broker.ca_file()).unwrap());
    let reason = async |target: Target| {
        let beto = start(beto::Setup::new(caller, target).unwrap());
        let name = |text: &str| beto::Name::parse(text).unwrap();
        let permission = beto::Permission::RepositoriesRead;
        let question =
            beto::Question::in_project(permission, name("m"), name("p"), name("s")).unwrap();
        match outcome(ask(&beto, question)).await.0 {
            Err(CouldNotAsk::NotConnected(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    let wrong = url.replace(PASSWORD, "hunter3").parse().unwrap();
    let told = reason(Target::new(wrong, trusted()).unwrap()).await;
    assert!(told.contains("ACCESS_REFUSED") && !told.contains("hunter3"), "{told}");

    // A broker that another authority vouches for is told nothing at all.
    let folder = tempfile::tempdir().unwrap();
    TestCa::new().write_to(&folder.path().join("ca.pem")).unwrap();
    let other = Trust::from_pem_file(&folder.path().join("ca.pem")).unwrap();
    let told = reason(Target::new(url.parse().unwrap(), Some(other)).unwrap()).await;
    assert!(told.contains("invalid peer certificate"), "{told}");
}
