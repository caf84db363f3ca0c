//! `PUT /v1/site/ssh-access/acknowledgement`.

use std::sync::Arc;

use http::StatusCode;
use serde_json::value::RawValue;
use service_kit::{
    Call, ProblemReply,
    body::read_json,
    fields::{JsonObject, Query, WrongFields},
    json,
    router::Answer,
};
use site_protocol::{SshAcknowledged, SshAttested};
use ssh_access::{Acknowledgement, Attested, Cursor, Digest, Failure, Failures, KeyId, UnixUser};

use crate::{authenticate::SshAgent, problems, state::State};

/// Stores what the agent of the Site has made durable.
pub(crate) async fn acknowledge(state: Arc<State>, caller: SshAgent, call: Call) -> Answer {
    let mut wrong = WrongFields::new();
    Query::of(&call.head.uri).finish(&mut wrong);
    let bytes = read_json(&call.head.headers, call.body, state.limits.json_body()).await?;
    let told = told(&bytes, wrong)?;
    let stored = caller.access.feed.acknowledge(&told).await;
    let stored = stored.map_err(|error| problems::ssh_acknowledge(&state, error))?;
    let attested = stored.attested.map(|attested| match attested {
        Attested::Match => SshAttested::Match,
        Attested::Mismatch => SshAttested::Mismatch,
        Attested::Behind => SshAttested::Behind,
    });
    let answer = SshAcknowledged {
        cursor: stored.cursor.to_string(),
        head: stored.head.to_string(),
        attested,
        server_time: stored.stored_at,
    };
    json(StatusCode::OK, &answer)
}

/// What a body says.
pub(crate) fn told(body: &[u8], mut wrong: WrongFields) -> Result<Acknowledgement, ProblemReply> {
    let mut object = JsonObject::parse(body)?;
    let cursor = object
        .required::<String>("cursor", &mut wrong, "a text")
        .and_then(|text| wrong.check("cursor", Cursor::parse(&text)));
    let chain_digest = object
        .required::<String>("chainDigest", &mut wrong, "a text")
        .and_then(|text| wrong.check("chainDigest", Digest::parse(&text)));
    let set_digest = object
        .optional::<String>("setDigest", &mut wrong, "a text")
        .and_then(|text| wrong.check("setDigest", Digest::parse(&text)));
    let failures = failures(&mut object, &mut wrong);
    object.finish(&mut wrong);
    let read = (|| {
        Some(Acknowledgement {
            cursor: cursor?,
            chain_digest: chain_digest?,
            set_digest,
            failures: failures?,
        })
    })();
    wrong.accept(read)
}

fn failures(object: &mut JsonObject<'_>, wrong: &mut WrongFields) -> Option<Failures> {
    let raw = object.required_raw("failures", wrong)?;
    let items: Option<Vec<&RawValue>> = serde_json::from_str(raw.get()).ok();
    let Some(items) = items.filter(|items| items.len() <= Failures::MOST) else {
        wrong.push("failures", format!("must be an array of at most {}", Failures::MOST));
        return None;
    };
    let mut failures = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let part = format!("failures[{index}]");
        let Ok(mut object) = JsonObject::parse(item.get().as_bytes()) else {
            wrong.push(&part, "must be an object");
            continue;
        };
        let mut inner = WrongFields::new();
        failures.extend(failure(&mut object, &mut inner));
        object.finish(&mut inner);
        wrong.nest(&part, inner);
    }
    // Where one is wrong, that is told already.
    if failures.len() < items.len() {
        return None;
    }
    wrong.check("failures", Failures::new(failures))
}

fn failure(object: &mut JsonObject<'_>, wrong: &mut WrongFields) -> Option<Failure> {
    let user = object
        .required::<String>("unixUser", wrong, "a text")
        .and_then(|text| wrong.check("unixUser", UnixUser::parse(&text)));
    let key = object
        .required::<String>("keyId", wrong, "a text")
        .and_then(|text| wrong.check("keyId", KeyId::parse(&text)));
    let reason = object.required::<String>("reason", wrong, "a text");
    let failure = Failure::new(user?, key?, &reason?);
    wrong.check("reason", failure)
}
