//! The database of SSH access goes away, and nothing else does.

use test_support::eventually;

use super::{cases, served_by};
use crate::support::{Gate, LONG, Place};

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
