//! The database of SSH access goes away, and nothing else does.

use test_support::eventually;

use site_protocol::paths;
use ssh_access::{MemberId, NewKey, REGISTRY_ROLE, Registry};

use super::{cases, get, pool, propagate, public_key, random, served, served_by};
use crate::support::{Gate, LONG, Place};

#[tokio::test]
async fn a_change_that_nobody_brings_to_the_feed_is_an_alarm() {
    let (api, bearer) = served().await;
    let alarm = async || {
        assert_eq!(api.send(&get(paths::SSH_CHANGES, &bearer)).await.status, 200);
        api.alarms().await.contains(&"ssh_propagation".to_owned())
    };
    let registry = Registry::new(pool(&api.place, REGISTRY_ROLE.name));
    let new = NewKey { member: MemberId::parse("m1").unwrap(), key: public_key(0), end: None };
    registry.add_key(&new, &random()).await.unwrap();
    assert!(!alarm().await, "it may take a moment");
    let older = "UPDATE ssh_access.changed_member SET changed_at = changed_at - interval '30 s'";
    api.place.database.superuser().await.batch_execute(older).await.unwrap();
    assert!(alarm().await);
    propagate(&api.place).await;
    assert!(!alarm().await);
}

#[tokio::test]
async fn a_database_that_goes_away_is_told_and_what_has_another_one_goes_on() {
    let place = Place::prepare().await;
    let url = place.database.url("ssh_access_api");
    let mut gate = Gate::open_before(&url);
    let through = gate.url(&url);
    let (api, bearer) = served_by(place, |command| {
        command.env("SSH_ACCESS_DATABASE_URL", &through);
    })
    .await;
    for request in cases(&bearer) {
        assert_eq!(api.send(&request).await.status, 200);
    }
    gate.shut().await;
    for request in cases(&bearer) {
        let problem = api.send(&request).await.problem();
        assert_eq!((problem.code.as_str(), problem.retryable), ("database_unavailable", true));
    }
    assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
    gate.open();
    for request in cases(&bearer) {
        eventually(LONG, "an answer", async || {
            (api.send(&request).await.status == 200).then_some(())
        })
        .await;
    }
}
