//! Databases of the two contexts that are away.

use std::sync::atomic::Ordering;

use test_support::eventually;

use crate::support::{Api, Gate, LONG, Place, RUN};

/// A running Site API that reaches one of the contexts through a gate.
async fn behind_a_gate(setting: &str, role: &str) -> (Api, Gate) {
    let place = Place::prepare().await;
    place.accept_and_submit(RUN);
    place.retain();
    let url = place.database.url(role);
    let gate = Gate::open_before(&url);
    let mut command = place.command();
    place.authority(&mut command);
    command.env(setting, gate.url(&url));
    (place.start_by(command).await, gate)
}

async fn has_alarm(api: &Api) -> bool {
    api.alarms().await.iter().any(|name| name == "database")
}

#[tokio::test]
async fn a_context_that_is_away_is_told_alarmed_and_forgotten_when_it_is_back() {
    for (setting, role) in [
        ("EXECUTION_CORE_DATABASE_URL", "execution_core_api"),
        ("RESOURCE_PROVISIONING_DATABASE_URL", "resource_provisioning_api"),
    ] {
        let (api, mut gate) = behind_a_gate(setting, role).await;
        let asked = api.may_execute(RUN, 1);
        assert_eq!(api.send(&asked).await.code(), "authority_unavailable", "{role}");
        gate.shut().await;
        let problem = api.send(&asked).await.problem();
        assert_eq!(
            (problem.code.as_str(), problem.retryable),
            ("database_unavailable", true),
            "{role}"
        );
        assert!(has_alarm(&api).await, "{role}");
        // Another context is not touched.
        assert_eq!(api.send(&api.poll("after=0")).await.status, 200, "{role}");
        gate.open();
        eventually(LONG, "an answer", async || {
            (api.send(&asked).await.code() == "authority_unavailable").then_some(())
        })
        .await;
        eventually(LONG, "the end of the alarm", async || (!has_alarm(&api).await).then_some(()))
            .await;
    }
}

/// It is the alarm's own look that clears it, with each credential: nobody calls meanwhile. How many
/// good looks that takes is in `watch`.
#[tokio::test]
async fn the_alarms_own_look_is_with_each_credential() {
    let (api, mut gate) = behind_a_gate("EXECUTION_CORE_DATABASE_URL", "execution_core_api").await;
    let turned_away = gate.turn_away().await;
    assert_eq!(api.send(&api.read_run(RUN)).await.code(), "database_unavailable");
    assert!(has_alarm(&api).await);
    let by_the_request = turned_away.load(Ordering::Relaxed);
    eventually(LONG, "looks", async || {
        (turned_away.load(Ordering::Relaxed) > by_the_request + 2).then_some(())
    })
    .await;
    assert!(has_alarm(&api).await);
    gate.shut().await;
    gate.open();
    eventually(LONG, "the end of the alarm", async || (!has_alarm(&api).await).then_some(())).await;
}
