//! A real login issuer beside a test: the npm package `oidc-provider`, run by node over TLS.
//!
//! Its members have logged in already: a test asks for their tokens beside the issuer, and the
//! issuer's own token endpoint makes them. `oidc/provider.mjs` is all of it that is ours.

mod install;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    TestCa,
    process::{Process, WaitError, profile_folder},
};

use install::Installation;

const SCRIPT: &str = include_str!("oidc/provider.mjs");

/// It makes ten RSA primes; builds may be running beside it.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// A running issuer on 127.0.0.1. Its process and its folder go with the value.
pub struct OidcProvider {
    process: Process,
    ready: Ready,
    installation: Installation,
    folder: TempDir,
}

/// Why there is no issuer.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// Node or the package are missing, or a file or a program can't be used.
    #[error("preparing the package oidc-provider: {0}")]
    Io(#[from] io::Error),
    /// It ended, or did not get ready in time.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// Where the issuer is, as it says itself.
#[derive(Deserialize)]
struct Ready {
    issuer: String,
    beside: u16,
}

/// What an access token is to be.
#[derive(Clone, Copy, Debug)]
pub struct AccessRequest<'a> {
    audiences: &'a [&'a str],
    algorithm: &'a str,
    life: u32,
}

/// What the token endpoint answers to a member's client.
#[derive(Clone, Deserialize)]
pub struct MemberTokens {
    /// The access token, a JWT.
    pub access_token: String,
    /// The ID token.
    pub id_token: String,
}

impl<'a> AccessRequest<'a> {
    /// For these audiences, signed by RS256, for five minutes.
    #[must_use]
    pub const fn new(audiences: &'a [&'a str]) -> Self {
        Self { audiences, algorithm: "RS256", life: 300 }
    }

    /// By another algorithm: RS256, PS256, ES256, ES384 or EdDSA.
    #[must_use]
    pub fn algorithm(self, algorithm: &'a str) -> Self {
        Self { algorithm, ..self }
    }

    /// For so many seconds.
    #[must_use]
    pub fn life(self, seconds: u32) -> Self {
        Self { life: seconds, ..self }
    }

    fn json(self) -> Value {
        json!({ "audiences": self.audiences, "alg": self.algorithm, "life": self.life })
    }
}

impl OidcProvider {
    /// Starts one with new keys and a certificate of `ca`. What is missing on the machine is
    /// installed before.
    ///
    /// # Errors
    ///
    /// [`OidcError`].
    pub async fn start(ca: &TestCa) -> Result<Self, OidcError> {
        let installation = tokio::task::spawn_blocking(|| {
            let target = profile_folder().parent().map(PathBuf::from).unwrap_or_default();
            Installation::find_or_install(&path(), &target.join("tools"))
        });
        let installation = installation.await.map_err(io::Error::other)??;
        let folder = tempfile::Builder::new().prefix("site-control-oidc-").tempdir()?;
        let file = |name: &str| folder.path().join(name);
        ca.write_to(&file("ca.pem"))?;
        ca.issue(&["127.0.0.1"]).write_to(&file("cert.pem"), &file("key.pem"))?;
        fs::write(file("provider.mjs"), SCRIPT)?;
        let (process, ready) = run(&installation, folder.path(), 0).await?;
        Ok(Self { process, ready, installation, folder })
    }

    /// The issuer, an origin.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.ready.issuer
    }

    /// Tokens of a member, as their client gets them from the token endpoint.
    ///
    /// # Panics
    ///
    /// When the issuer gives none.
    pub async fn member(&self, member: &str, access: AccessRequest<'_>) -> MemberTokens {
        let mut request = access.json();
        request["member"] = member.into();
        serde_json::from_value(self.ask("member", request).await).expect("two tokens")
    }

    /// An access token of the client itself.
    ///
    /// # Panics
    ///
    /// As [`OidcProvider::member`].
    pub async fn client(&self, access: AccessRequest<'_>) -> String {
        let answer = self.ask("client", access.json()).await;
        answer["access_token"].as_str().expect("a token").to_owned()
    }

    /// Has it sign with other keys and publish no others.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn rotate(&self) {
        self.ask("rotate", json!({})).await;
    }

    /// How often a path of it was asked for since it was started.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn asked(&self, path: &str) -> u64 {
        self.ask("asked", json!({})).await[path].as_u64().unwrap_or(0)
    }

    /// Has it say nothing, while connections to it are still taken, until [`OidcProvider::resume`].
    pub fn pause(&self) {
        self.process.signal(Signal::STOP);
    }

    /// Has it go on, with the keys that it had.
    pub fn resume(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Kills it. [`OidcProvider::start_again`] brings it back.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Starts it again where it was, with other keys.
    ///
    /// # Errors
    ///
    /// [`OidcError`].
    pub async fn start_again(&mut self) -> Result<(), OidcError> {
        let port = self.ready.issuer.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port = port.ok_or_else(|| io::Error::other("an issuer without a port"))?;
        (self.process, self.ready) = run(&self.installation, self.folder.path(), port).await?;
        Ok(())
    }

    /// Asks beside the issuer.
    async fn ask(&self, what: &str, request: Value) -> Value {
        let answer = post(self.ready.beside, what, &request.to_string()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{error}; {}", self.process.tail()));
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert!(
            answer.starts_with("HTTP/1.0 200 ") || answer.starts_with("HTTP/1.1 200 "),
            "{body}"
        );
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

/// In HTTP/1.0, whose answers end with their connection.
async fn post(port: u16, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let head = format!("POST /{path} HTTP/1.0\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn run(
    installation: &Installation,
    folder: &Path,
    port: u16,
) -> Result<(Process, Ready), OidcError> {
    let mut command = Command::new(&installation.node);
    command.arg(folder.join("provider.mjs")).arg(&installation.module).arg(folder);
    command.arg(port.to_string()).env_remove("NODE_OPTIONS");
    let process = Process::start(command)?;
    let is_ready = |line: &str| line.starts_with("ready ");
    let line = process.wait_for_line("it serves", READY_WITHIN, is_ready).await?;
    let ready = serde_json::from_str(line.trim_start_matches("ready ")).map_err(io::Error::from)?;
    Ok((process, ready))
}

#[expect(clippy::disallowed_methods, reason = "the machine's tools, not a setting of ours")]
fn path() -> Vec<PathBuf> {
    env::var_os("PATH").iter().flat_map(env::split_paths).collect()
}
