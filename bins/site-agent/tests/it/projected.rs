//! The agent in a cluster: its token is projected and swapped while it polls. Everything is real but
//! the cluster's API server.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use test_support::{
    API_AUDIENCE, DatabaseUrls, KubeApi, Process, Projected, TestCa, TestDatabase, TestSite,
    TokenRequest, eventually,
};

use crate::{LONG, agent::wait_for_receipt};

const NAMESPACE: &str = "pharos-site-runtime";
const ACCOUNT: &str = "runtime-k8s";
const POD: &str = "runtime-k8s-0";

struct InCluster {
    agent: Process,
    _site_api: Process,
    site: TestSite,
    kube: KubeApi,
    token: Projected,
    _database: TestDatabase,
    _folder: tempfile::TempDir,
}

impl InCluster {
    /// An agent that works by its projected token. A token that the API server forgets is refused
    /// within a second or two.
    async fn start(first: impl FnOnce(&KubeApi) -> String) -> Self {
        let database = TestDatabase::create().await;
        let urls = DatabaseUrls {
            api: database.url("site_coordination_api"),
            producer: database.url("site_coordination_producer"),
        };
        let folder = tempfile::tempdir().unwrap();
        let site = TestSite::set_up(folder.path(), "lab", "k8s", urls).unwrap();

        let ca = TestCa::new();
        let kube = KubeApi::start_keeping(&ca, Duration::from_secs(1)).await;
        kube.create_account("pharos", "site-api");
        kube.allow_reviews("pharos", "site-api");
        kube.create_account(NAMESPACE, ACCOUNT);
        kube.create_pod(NAMESPACE, POD);
        let reviewer = kube.issue(TokenRequest::new("pharos", "site-api", &[API_AUDIENCE]));
        let review = Projected::at(folder.path().join("token-review")).unwrap();
        review.swap(&[("ca.crt", &ca.cert_pem()), ("token", &reviewer)]).unwrap();
        let map = format!(r#"{{"system:serviceaccount:{NAMESPACE}:{ACCOUNT}":"k8s"}}"#);
        let mut command = site.site_api_command();
        command
            .env_remove("SITE_API_NATIVE_GRANTS_FILE")
            .env("SITE_API_GRANTS_JSON", map)
            .env("SITE_API_TOKEN_REVIEW_URL", kube.origin())
            .env("SITE_API_TOKEN_REVIEW_CA_FILE", review.file("ca.crt"))
            .env("SITE_API_TOKEN_REVIEW_TOKEN_FILE", review.file("token"))
            .env("SITE_API_TOKEN_REVIEW_CACHE_SECONDS", "1");
        let site_api = Process::start(command).unwrap();
        let listens = |line: &str| line.contains("\"site_api.listening\"");
        site_api.wait_for_line("that it listens", LONG, listens).await.unwrap();

        let token = Projected::at(folder.path().join("token")).unwrap();
        token.swap(&[("token", &first(&kube))]).unwrap();
        let handler = folder.path().join("handler");
        fs::write(&handler, "#!/bin/sh\ncat > /dev/null\necho 1\n").unwrap();
        fs::set_permissions(&handler, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = site.agent_command(&handler);
        command.env("SITE_API_TOKEN_FILE", token.file("token"));
        let agent = Process::start(command).unwrap();
        let _database = database;
        Self { agent, _site_api: site_api, site, kube, token, _database, _folder: folder }
    }

    /// Enqueues the command at a place, and returns when the agent has its receipt.
    async fn works(&self, seq: u64) {
        let lines = self.site.file("lines");
        let line = format!("{{\"key\":\"k{seq}\",\"kind\":\"test\",\"body\":{{}}}}\n");
        fs::write(&lines, line).unwrap();
        let lines = lines.display().to_string();
        let stream = ["commands", "enqueue", "--site", "lab", "--environment", "k8s"];
        self.site.admin(&[&stream[..], &["--lines", &lines]].concat()).unwrap();
        wait_for_receipt(&self.agent, seq).await;
    }

    fn was_refused(&self) -> bool {
        self.agent.lines().iter().any(|line| line.text.contains("\"call_refused\""))
    }
}

/// A new token of the Runtime in its Pod.
fn issue(kube: &KubeApi) -> String {
    kube.issue(TokenRequest::new(NAMESPACE, ACCOUNT, &["site-control"]).pod(POD))
}

#[tokio::test]
async fn a_projected_token_that_is_swapped_while_the_agent_polls_is_used_at_once() {
    let mut old = String::new();
    let world = InCluster::start(|kube| {
        old = issue(kube);
        old.clone()
    })
    .await;
    world.works(1).await;
    for seq in [2, 3, 4] {
        let new = issue(&world.kube);
        world.token.swap(&[("token", &new)]).unwrap();
        // The poll that waits has the old one; what comes after it, its result first of all, the new.
        world.works(seq).await;
        assert!(world.kube.reviews_of(&new) > 0, "the result at {seq} came by the new token");
        // By now another poll waits, with the new one: that the old one is refused touches nobody.
        world.kube.forget(&old);
        assert!(!world.kube.ask(&old, &["site-control"]), "the old one is refused");
        old = new;
    }
    world.works(5).await;
    assert!(!world.was_refused(), "{}", world.agent.tail());
}

#[tokio::test]
async fn an_agent_whose_token_is_refused_goes_on_with_the_next_one_by_itself() {
    let mut old = String::new();
    let world = InCluster::start(|kube| {
        old = issue(kube);
        old.clone()
    })
    .await;
    world.works(1).await;
    world.kube.forget(&old);
    eventually(LONG, "the refusal", async || world.was_refused().then_some(())).await;
    world.token.swap(&[("token", &issue(&world.kube))]).unwrap();
    world.works(2).await;
}
