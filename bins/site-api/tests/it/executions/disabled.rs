//! A listener without execution authority: its routes say so, and it costs nothing.

use crate::support::{Case, Place, RUN};

#[tokio::test]
async fn without_the_setting_each_execution_route_says_so_to_who_is_let_in_and_to_nobody_else() {
    for value in [None, Some("false")] {
        let place = Place::prepare().await;
        place.accept_and_submit(RUN);
        place.retain();
        let mut command = place.command();
        if let Some(value) = value {
            command.env("SITE_API_EXECUTION_AUTHORITY_ENABLED", value);
        }
        let api = place.start_by(command).await;
        let cases: Vec<_> = Case::granted().filter(Case::is_of_executions).collect();
        assert!(!cases.is_empty());
        for case in cases {
            let request = case.request("");
            let problem = api.send(&request.clone().bearer(&api.bearer())).await.problem();
            let told = (problem.code.as_str(), problem.retryable);
            assert_eq!(told, ("execution_authority_disabled", true), "{case:?}");
            assert_eq!(api.send(&request).await.code(), "unauthenticated", "{case:?}");
        }
        for request in [api.read_run(RUN), api.may_execute(RUN, 1)] {
            assert_eq!(api.send(&request).await.code(), "execution_authority_disabled");
        }
        assert_eq!(api.send(&api.poll("after=0")).await.status, 200);
    }
}
