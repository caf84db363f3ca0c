//! The API server of a cluster, as far as somebody asks it who a ServiceAccount's token is.
//!
//! It is the one double among real parts, since no cluster runs beside the tests. It answers
//! `POST /apis/authentication.k8s.io/v1/tokenreviews` as a real kube-apiserver 1.36 was seen to
//! answer, row by row; `tests/it/kube_api.rs` has the rows. It knows accounts, Pods and the tokens
//! that it issued, checks the caller's own token and right, and keeps successes for a while, as the
//! real one does. It looks its tokens up: their signatures say nothing.
//!
//! [`Fault`]s, cuts and a hold are what a test switches on top of that.

mod cluster;
mod reply;
mod server;
mod token;

use std::{sync::Arc, time::Duration};

use tokio::net::TcpListener;

use crate::{
    TestCa,
    peer::{Received, acceptor, locked},
};

use cluster::Cluster;
use server::Server;

pub use token::{API_AUDIENCE, TokenRequest};

/// How long the real server keeps a success.
const SUCCESSES_KEPT: Duration = Duration::from_secs(10);

/// What goes wrong with each review while it is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// 401: the caller's own token is not known.
    CallerUnknown,
    /// 403: the caller may not ask.
    CallerForbidden,
    /// 429.
    TooManyRequests,
    /// 500.
    Internal,
    /// The page of a gateway, with the status of a good answer.
    Html,
    /// A good answer, byte by byte, that takes longer than anybody waits.
    SlowDrip,
    /// The status of a good answer, and no body.
    EmptyBody,
    /// A good answer with a member of a mebibyte.
    HugeBody,
    /// An answer that says yes to another token than the one that was sent.
    AnotherToken,
    /// An answer that says yes and names no audience: the token is good for the API server, which
    /// is not to say for anybody else.
    NoAudiences,
    /// A good answer, in which the account has another uid: as of one that was made again, whose old
    /// token is good all the same.
    AnotherUid,
    /// No answer, for as long as the caller waits.
    Silence,
    /// The connection ends in the middle of the answer.
    Cut,
}

/// A running double on 127.0.0.1.
pub struct KubeApi {
    origin: String,
    server: Arc<Server>,
}

impl KubeApi {
    /// Listens with a certificate of `ca`, for as long as the test's runtime lives. It keeps
    /// successes for ten seconds, as the real one does.
    pub async fn start(ca: &TestCa) -> Self {
        Self::start_keeping(ca, SUCCESSES_KEPT).await
    }

    /// As [`KubeApi::start`], keeping successes for another time.
    ///
    /// # Panics
    ///
    /// When the machine has no free port.
    pub async fn start_keeping(ca: &TestCa, successes: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let server = Arc::new(Server::new(acceptor(ca), Cluster::new(successes)));
        tokio::spawn(server::listen(listener, Arc::clone(&server)));
        Self { origin: format!("https://127.0.0.1:{port}"), server }
    }

    /// `https://127.0.0.1` and its port.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Makes an account, and returns its uid. One that is made again has another.
    pub fn create_account(&self, namespace: &str, name: &str) -> String {
        self.with_cluster(|cluster| cluster.create_account(namespace, name))
    }

    /// Deletes an account. Nobody who asks learns it while an earlier success is kept.
    pub fn delete_account(&self, namespace: &str, name: &str) {
        self.with_cluster(|cluster| cluster.delete_account(namespace, name));
    }

    /// Lets an account ask who a token is: what a ClusterRole with `create` on `tokenreviews` does.
    pub fn allow_reviews(&self, namespace: &str, name: &str) {
        self.with_cluster(|cluster| cluster.allow_reviews(namespace, name));
    }

    /// Makes a Pod, and returns its uid.
    pub fn create_pod(&self, namespace: &str, name: &str) -> String {
        self.with_cluster(|cluster| cluster.create_pod(namespace, name))
    }

    /// Deletes a Pod, as [`KubeApi::delete_account`] does an account.
    pub fn delete_pod(&self, namespace: &str, name: &str) {
        self.with_cluster(|cluster| cluster.delete_pod(namespace, name));
    }

    /// Issues a token of an account.
    ///
    /// # Panics
    ///
    /// When the account or the Pod of the request is not there.
    pub fn issue(&self, request: TokenRequest<'_>) -> String {
        self.with_cluster(|cluster| cluster.issue(request))
    }

    /// Has a token authenticated for these audiences now, as if somebody else had asked, and says
    /// whether it was. A success is kept.
    pub fn ask(&self, token: &str, audiences: &[&str]) -> bool {
        let audiences: Vec<_> = audiences.iter().map(|&audience| audience.to_owned()).collect();
        self.with_cluster(|cluster| cluster.authenticate(token, &audiences).is_ok())
    }

    /// Makes a token one that nobody knows, at once.
    pub fn forget(&self, token: &str) {
        self.with_cluster(|cluster| cluster.forget(token));
    }

    /// Has each review from now on, also one that is held, go wrong in a way, or none any more.
    pub fn fail(&self, fault: Option<Fault>) {
        locked(&self.server.state).fault = fault;
    }

    /// Answers no review until [`KubeApi::release`].
    pub fn hold(&self) {
        self.server.held.send_replace(true);
    }

    /// Answers those that were held, as it would if they had come just now.
    pub fn release(&self) {
        self.server.held.send_replace(false);
    }

    /// Gives new connections a certificate of another authority, and ends those that are open.
    pub fn use_certificate_of(&self, ca: &TestCa) {
        *locked(&self.server.acceptor) = acceptor(ca);
        self.cut_connections();
    }

    /// Ends every connection.
    pub fn cut_connections(&self) {
        locked(&self.server.connections).abort_all();
    }

    /// Every request so far.
    pub fn received(&self) -> Vec<Received> {
        locked(&self.server.state).received.clone()
    }

    /// How often it was asked about a token.
    pub fn reviews_of(&self, token: &str) -> usize {
        let state = locked(&self.server.state);
        let asked = state.received.iter().filter_map(reply::token_of);
        asked.filter(|asked| asked == token).count()
    }

    /// How many requests are being answered, or held.
    pub fn under_way(&self) -> usize {
        locked(&self.server.state).under_way
    }

    /// How many there were at once, at the most.
    pub fn most_at_once(&self) -> usize {
        locked(&self.server.state).most_at_once
    }

    fn with_cluster<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        change(&mut locked(&self.server.state).cluster)
    }
}
