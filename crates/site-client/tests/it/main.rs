//! The client against a peer that answers well, badly or not at all.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod requests;

use std::{path::PathBuf, time::Duration};

use site_client::{
    Origin, PollRequest, SiteClient, Timeouts, TokenFile, command_digest, next_chain_digest,
    result_digest, roots_from_pem_file,
};
use site_protocol::{Command, Digest};
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
        generation: 1,
        after: 4,
        after_digest: Some(Digest::from_bytes([7; 32])),
        limit: 2,
        wait: Duration::from_secs(3),
    }
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
    format!(
        r#"{{"commandId":"{command_id}","seq":5,"digest":"{digest}","outcome":"succeeded","receivedAt":"2024-05-06T07:08:10Z"}}"#
    )
}
