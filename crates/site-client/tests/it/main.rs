//! The client against a peer that answers well, badly or not at all.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod faults;
mod lists;
mod proxy;
mod requests;
mod sessions;
mod ssh_access;

use std::{path::PathBuf, time::Duration};

use site_client::{
    Next, Origin, PollRequest, ResultToStore, SiteClient, Timeouts, TokenFile, Writer,
    command_digest, next_chain_digest, result_digest, roots_from_pem_file,
};
use site_protocol::{Command, Digest, Session};
use test_support::{Peer, Received, Reply, TestCa};

const TOKEN: &str = "scnb_0123456789abcdef.the-secret";

/// A client that trusts `ca`, and the folder of its files.
struct Site {
    client: SiteClient,
    token_path: PathBuf,
    _folder: tempfile::TempDir,
}

/// A peer with this one answer, and a client of it.
async fn one_answer(reply: Reply) -> (Peer, Site) {
    answers(move |_| reply.clone()).await
}

async fn answers(answer: impl FnMut(&Received) -> Reply + Send + 'static) -> (Peer, Site) {
    let ca = TestCa::new();
    let peer = Peer::start(&ca, answer).await;
    let site = client(&ca, peer.origin(), Timeouts::default()).await;
    (peer, site)
}

async fn client(ca: &TestCa, origin: &str, timeouts: Timeouts) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let (ca_path, token_path) = (folder.path().join("ca.pem"), folder.path().join("token"));
    ca.write_to(&ca_path).unwrap();
    std::fs::write(&token_path, format!("{TOKEN}\n")).unwrap();
    let roots = roots_from_pem_file(&ca_path).unwrap();
    let token = TokenFile::open(&token_path).await.unwrap();
    let origin = Origin::parse(origin).unwrap();
    let client = SiteClient::new(origin, roots, token, timeouts);
    Site { client, token_path, _folder: folder }
}

fn question() -> PollRequest {
    PollRequest {
        writer: Writer::FIRST,
        after: 4,
        after_digest: Some(Digest::from_bytes([7; 32])),
        cancel_rev: 0,
        limit: 2,
        wait: Duration::from_secs(3),
    }
}

/// The writer of a session in generation 3.
fn writer() -> Writer {
    Writer::of(&Session {
        session_id: "a-session-of-this-test".to_owned(),
        generation: 3,
        done_seq: 0,
        done_digest: Digest::ZERO,
        last_seq: 0,
        server_time: chrono::DateTime::UNIX_EPOCH,
    })
}

/// The result of `cmd_4`, after which [`page`] goes on.
fn result(bytes: &[u8]) -> ResultToStore<'static> {
    ResultToStore {
        command_id: "cmd_4",
        seq: 4,
        chain_digest: Digest::from_bytes([7; 32]),
        result: bytes.to_vec().into(),
    }
}

fn next() -> Next {
    Next { limit: 2, wait: Duration::from_secs(3), cancel_rev: 0 }
}

/// A page with one command that continues [`question`].
fn page() -> String {
    let text = format!(
        r#"{{"commandId":"cmd_5","seq":5,"kind":"k","digest":"{}","createdAt":"2024-05-06T07:08:09.000001Z","body":{{"b": 1.0, "a":[]}},"laterField":1}}"#,
        Digest::ZERO
    );
    let command: Command = serde_json::from_str(&text).unwrap();
    let digest = command_digest(&command);
    let text = text.replace(&Digest::ZERO.to_string(), &digest.to_string());
    let next = next_chain_digest(&Digest::from_bytes([7; 32]), &digest);
    format!(
        r#"{{"commands":[{text}],"nextAfter":5,"nextDigest":"{next}","lastSeq":5,"head":{{"seq":5,"ageSeconds":0}},"serverTime":"2024-05-06T07:08:10Z","laterField":{{}}}}"#
    )
}

fn receipt(command_id: &str, result: &[u8]) -> String {
    let digest = result_digest(result);
    let seq = command_id.trim_start_matches("cmd_");
    format!(
        r#"{{"commandId":"{command_id}","seq":{seq},"digest":"{digest}","outcome":"succeeded","receivedAt":"2024-05-06T07:08:10Z"}}"#
    )
}
