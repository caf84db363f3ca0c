//! The double of a cluster's API server, row by row as a real kube-apiserver 1.36 was seen to answer.

use std::{io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use test_support::{API_AUDIENCE, Fault, KubeApi, TestCa, TokenRequest, eventually};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, crypto,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

const GENEROUS: Duration = Duration::from_secs(60);
const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const OURS: &[&str] = &["site-control"];

/// A cluster with a reviewer, and a Runtime in its Pod.
struct World {
    kube: KubeApi,
    ca: TestCa,
    reviewer: String,
    account: String,
    pod: String,
}

impl World {
    async fn start() -> Self {
        Self::keeping(Duration::from_secs(10)).await
    }

    async fn keeping(successes: Duration) -> Self {
        let ca = TestCa::new();
        let kube = KubeApi::start_keeping(&ca, successes).await;
        kube.create_account("pharos", "site-api");
        kube.allow_reviews("pharos", "site-api");
        let reviewer = kube.issue(TokenRequest::new("pharos", "site-api", &[API_AUDIENCE]));
        let account = kube.create_account("runtimes", "runtime-k8s");
        let pod = kube.create_pod("runtimes", "runtime-0");
        Self { kube, ca, reviewer, account, pod }
    }

    /// A token of the Runtime in its Pod.
    fn token(&self, audiences: &[&str]) -> String {
        self.kube.issue(TokenRequest::new("runtimes", "runtime-k8s", audiences).pod("runtime-0"))
    }

    async fn review(&self, token: &str) -> (u16, Value) {
        self.review_for(token, &json!(OURS)).await
    }

    async fn review_for(&self, token: &str, audiences: &Value) -> (u16, Value) {
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": { "token": token, "audiences": audiences },
        });
        let (status, body) = self.send("POST", PATH, &self.reviewer, &body.to_string()).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    async fn send(&self, method: &str, path: &str, caller: &str, body: &str) -> (u16, String) {
        self.try_send(method, path, caller, body).await.unwrap()
    }

    async fn try_send(
        &self,
        method: &str,
        path: &str,
        caller: &str,
        body: &str,
    ) -> io::Result<(u16, String)> {
        let address = self.kube.origin().strip_prefix("https://").unwrap();
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.ca.cert_pem().as_bytes()).unwrap();
        roots.add(ca).unwrap();
        let config =
            ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let tcp = TcpStream::connect(address).await?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
        let mut stream = BufReader::new(stream);
        let caller = if caller.is_empty() {
            String::new()
        } else {
            format!("authorization: Bearer {caller}\r\n")
        };
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: kube\r\n{caller}content-length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
        stream.flush().await?;
        let mut status = String::new();
        stream.read_line(&mut status).await?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await?;
            match line.trim_end().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        Ok((status, String::from_utf8(body).unwrap()))
    }
}

/// What a failure says; it has no `authenticated` at all.
fn error((status, review): &(u16, Value)) -> &str {
    assert_eq!(*status, 201, "{review}");
    assert_eq!(review["status"].get("authenticated"), None, "{review}");
    review["status"]["error"].as_str().unwrap()
}

#[tokio::test]
async fn a_token_for_the_audience_that_is_asked_for_is_authenticated() {
    let world = World::start().await;
    let token = world.token(OURS);
    let (status, review) = world.review(&token).await;
    assert_eq!(status, 201);
    assert_eq!((&review["kind"], &review["spec"]["token"]), (&json!("TokenReview"), &json!(token)));
    let status = &review["status"];
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!(OURS));
    let user = &status["user"];
    assert_eq!(user["username"], "system:serviceaccount:runtimes:runtime-k8s");
    assert_eq!(user["uid"], world.account.as_str());
    assert_eq!(user["groups"].as_array().unwrap().len(), 3);
    let extra = user["extra"].as_object().unwrap();
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["runtime-0"]));
    assert_eq!(extra["authentication.kubernetes.io/pod-uid"], json!([world.pod]));
    assert_eq!(extra.len(), 4, "{extra:?}");
}

#[tokio::test]
async fn of_several_audiences_those_of_the_token_are_answered() {
    let world = World::start().await;
    let token = world.token(&["site-control", "other"]);
    let (_, review) = world.review_for(&token, &json!(["third", "site-control"])).await;
    assert_eq!(review["status"]["audiences"], json!(OURS));
}

#[tokio::test]
async fn another_audience_or_none_is_a_failure_without_the_key() {
    let world = World::start().await;
    let token = world.token(&["other"]);
    let refused = world.review(&token).await;
    let reason = r#"[invalid bearer token, token audiences ["other"] is invalid for the target audiences ["site-control"]]"#;
    assert_eq!(error(&refused), reason);
    let token = world.token(OURS);
    let none = world.review_for(&token, &json!([])).await;
    assert!(error(&none).contains("is invalid for the target audiences"), "{none:?}");
}

#[tokio::test]
async fn garbage_and_what_was_tampered_with_is_a_failure() {
    let world = World::start().await;
    let token = world.token(OURS);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let tampered = format!("{signed}.{}", signature.chars().rev().collect::<String>());
    for text in ["garbage", "a.b.c", &tampered] {
        assert_eq!(error(&world.review(text).await), "invalid bearer token", "{text}");
    }
}

#[tokio::test]
async fn an_empty_token_is_a_bad_request() {
    let world = World::start().await;
    let (status, body) = world.review("").await;
    assert_eq!((status, &body["kind"]), (400, &json!("Status")));
    assert_eq!(body["message"], "token is required for TokenReview in authentication");
}

#[tokio::test]
async fn a_trailing_newline_is_authenticated_all_the_same() {
    let world = World::start().await;
    let token = world.token(OURS) + "\n";
    let (_, review) = world.review(&token).await;
    assert_eq!(review["status"]["authenticated"], true);
    assert_eq!(review["spec"]["token"], token.as_str());
}

#[tokio::test]
async fn a_token_of_no_pod_is_authenticated_without_the_keys_of_pod_and_node() {
    let world = World::start().await;
    let token = world.kube.issue(TokenRequest::new("runtimes", "runtime-k8s", OURS));
    let (_, review) = world.review(&token).await;
    assert_eq!(review["status"]["authenticated"], true);
    let extra = review["status"]["user"]["extra"].as_object().unwrap();
    let keys: Vec<_> = extra.keys().collect();
    assert_eq!(keys, ["authentication.kubernetes.io/credential-id"]);
}

#[tokio::test]
async fn an_expired_token_is_a_failure() {
    let world = World::start().await;
    let request = TokenRequest::new("runtimes", "runtime-k8s", OURS).life(Duration::ZERO);
    let refused = world.review(&world.kube.issue(request)).await;
    assert!(error(&refused).contains("service account token has expired"), "{refused:?}");
}

#[tokio::test]
async fn the_caller_needs_a_good_token_and_the_right() {
    let world = World::start().await;
    let stranger = world.kube.issue(TokenRequest::new("runtimes", "runtime-k8s", &[API_AUDIENCE]));
    for (caller, expected) in
        [("garbage", 401), (world.token(OURS).as_str(), 401), (stranger.as_str(), 403), ("", 403)]
    {
        let (status, body) = world.send("POST", PATH, caller, "{}").await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &body["kind"]), (expected, &json!("Status")), "{caller}");
    }
    world.kube.forget(&world.reviewer);
    assert_eq!(world.send("POST", PATH, &world.reviewer, "{}").await.0, 401);
}

#[tokio::test]
async fn another_method_path_or_body_is_refused() {
    let world = World::start().await;
    let reviewer = &world.reviewer;
    assert_eq!(world.send("GET", PATH, reviewer, "").await.0, 405);
    assert_eq!(world.send("POST", "/apis", reviewer, "").await.0, 404);
    for body in ["", "{", "[]", r#"{"kind":"Pod","apiVersion":"v1"}"#] {
        assert_eq!(world.send("POST", PATH, reviewer, body).await.0, 400, "{body}");
    }
}

#[tokio::test]
async fn what_is_deleted_is_seen_when_the_kept_success_is_over() {
    let world = World::keeping(Duration::from_millis(300)).await;
    let (kept, fresh) = (world.token(OURS), world.token(OURS));
    assert_eq!(world.review(&kept).await.1["status"]["authenticated"], true);
    world.kube.delete_pod("runtimes", "runtime-0");
    assert_eq!(world.review(&kept).await.1["status"]["authenticated"], true, "kept");
    let refused = world.review(&fresh).await;
    assert!(error(&refused).contains("has been invalidated"), "failures are not: {refused:?}");
    eventually(GENEROUS, "the refusal", async || {
        let (_, review) = world.review(&kept).await;
        review["status"]["error"].as_str()?.contains("has been invalidated").then_some(())
    })
    .await;

    world.kube.delete_account("runtimes", "runtime-k8s");
    let refused = world.review(&fresh).await;
    assert!(error(&refused).contains("serviceaccounts \"runtime-k8s\" not found"), "{refused:?}");
    let now = world.kube.create_account("runtimes", "runtime-k8s");
    let refused = world.review(&fresh).await;
    let old = &world.account;
    let reason = format!("service account UID ({now}) does not match claim ({old})");
    assert!(error(&refused).contains(&reason), "{refused:?}");
}

#[tokio::test]
async fn requests_are_counted_and_held_until_they_are_released() {
    let world = Arc::new(World::start().await);
    let token = world.token(OURS);
    world.kube.hold();
    let reviews: Vec<_> = (0..3)
        .map(|_| {
            let (world, token) = (Arc::clone(&world), token.clone());
            tokio::spawn(async move { world.review(&token).await })
        })
        .collect();
    let kube = &world.kube;
    eventually(GENEROUS, "three", async || (kube.under_way() == 3).then_some(())).await;
    let mut reviews = reviews.into_iter();
    // A caller that goes away is not waited for.
    reviews.next().unwrap().abort();
    eventually(GENEROUS, "two", async || (kube.under_way() == 2).then_some(())).await;
    kube.release();
    for review in reviews {
        assert_eq!(review.await.unwrap().1["status"]["authenticated"], true);
    }
    assert_eq!((kube.reviews_of(&token), kube.most_at_once()), (3, 3));
    eventually(GENEROUS, "none", async || (kube.under_way() == 0).then_some(())).await;
}

#[tokio::test]
async fn each_fault_is_what_it_says() {
    let world = World::start().await;
    let token = world.token(OURS);
    let send = async || {
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": { "token": token, "audiences": OURS },
        });
        world.try_send("POST", PATH, &world.reviewer, &body.to_string()).await
    };
    for (fault, status) in [
        (Fault::CallerUnknown, 401),
        (Fault::CallerForbidden, 403),
        (Fault::TooManyRequests, 429),
        (Fault::Internal, 500),
        (Fault::Html, 200),
        (Fault::EmptyBody, 201),
        (Fault::HugeBody, 201),
        (Fault::AnotherToken, 201),
        (Fault::NoAudiences, 201),
        (Fault::AnotherUid, 201),
    ] {
        world.kube.fail(Some(fault));
        let (answered, body) = send().await.unwrap();
        assert_eq!(answered, status, "{fault:?}");
        let review: Value = serde_json::from_str(&body).unwrap_or_default();
        let yes = review["status"]["authenticated"] == true;
        match fault {
            Fault::AnotherToken => assert!(yes && review["spec"]["token"] != token.as_str()),
            Fault::NoAudiences => assert!(yes && review["status"].get("audiences").is_none()),
            Fault::AnotherUid => assert!(yes && review["status"]["user"]["uid"] == "another"),
            Fault::HugeBody => assert!(yes && body.len() > 1024 * 1024),
            Fault::EmptyBody => assert_eq!(body, ""),
            Fault::Html => assert!(body.contains("<html>")),
            _ => assert!(!yes, "{fault:?}: {body}"),
        }
    }
    for fault in [Fault::Silence, Fault::SlowDrip] {
        world.kube.fail(Some(fault));
        let waited = tokio::time::timeout(Duration::from_millis(500), send()).await;
        assert!(waited.is_err(), "{fault:?}");
    }
    world.kube.fail(Some(Fault::Cut));
    assert_eq!(send().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    world.kube.fail(None);
    assert_eq!(send().await.unwrap().0, 201);
}

#[tokio::test]
async fn another_authority_may_vouch_for_it_from_a_moment_on() {
    let mut world = World::start().await;
    let other = TestCa::new();
    world.kube.use_certificate_of(&other);
    let reviewer = world.reviewer.clone();
    assert!(world.try_send("GET", PATH, &reviewer, "").await.is_err());
    world.ca = other;
    assert_eq!(world.send("GET", PATH, &reviewer, "").await.0, 405);
}
