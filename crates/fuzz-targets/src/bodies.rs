//! Bodies in JSON: each reader in the house takes what another one makes.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, value::RawValue};
use service_kit::fields::{JsonObject, WrongFields};
use site_client::ResultToStore;
use site_coordination::{CommandId, JsonText, NewResult};
use site_protocol::{Digest, ResultBody, SessionRequest};

use crate::heads::assert_problem;

const COMMAND: &str = "cmd_0123456789abcdefghjkmnpqrstvwxyz";

/// The strict reader of objects takes no more than JSON, and whatever the usual one takes.
pub(crate) fn json_object(bytes: &[u8]) {
    let usual: Option<Map<String, Value>> = serde_json::from_slice(bytes).ok();
    let mut object = match JsonObject::parse(bytes) {
        Ok(object) => object,
        Err(problem) => {
            assert_problem(&problem);
            // Repeated names count each time.
            let names = bytes.iter().filter(|byte| **byte == b':').count();
            assert!(usual.is_none() || names > 256, "the usual reader takes it");
            return;
        }
    };
    crate::taken();
    serde_json::from_slice::<IgnoredAny>(bytes).unwrap();
    let mut wrong = WrongFields::new();
    let (one, two) = (object.optional_raw("a", &mut wrong), object.required_raw("b", &mut wrong));
    for raw in [one, two].into_iter().flatten() {
        let text = raw.get().as_bytes();
        assert!(bytes.windows(text.len()).any(|part| part == text), "not the exact text");
    }
    if let (Some(usual), Some(raw)) = (&usual, one) {
        assert_eq!(usual.get("a"), serde_json::from_str(raw.get()).ok().as_ref());
    }
    object.finish(&mut wrong);
    match wrong.finish() {
        Ok(()) => assert!(usual.is_none_or(|usual| usual.len() <= 2)),
        Err(problem) => assert_problem(&problem),
    }
}

/// A text is JSON for all or for none; the agent's output for a result has the same bounds less what
/// stands around it.
pub(crate) fn json_text(bytes: &[u8]) {
    let result = site_agent::parsers::result(0, bytes.to_vec());
    let made = site_api::parsers::result(command(), result.as_bytes());
    let made = made.unwrap_or_else(|problem| panic!("the agent's result: {}", problem.detail()));
    let taken = made.outcome.as_str() == "succeeded";
    let Ok(text) = std::str::from_utf8(bytes) else { return assert!(!taken) };
    let usual = serde_json::from_str::<Value>(text).is_ok();
    match JsonText::parse(text) {
        Ok(json) => {
            crate::taken();
            assert!(JsonText::parse(json.as_str()).unwrap() == json);
            assert_eq!(site_client::result_digest(bytes).as_bytes(), json.digest().as_bytes());
            assert!(json.as_str().len() <= JsonText::MAX_BYTES);
            if let Some(depth) = depth(json.as_str()) {
                assert!(depth <= JsonText::MAX_DEPTH);
                assert!(taken || depth == JsonText::MAX_DEPTH || bytes.len() > 1024 * 1023);
            }
        }
        Err(_) => {
            assert!(!usual || bytes.len() > JsonText::MAX_BYTES, "the usual reader takes it");
            // An output may be empty: then there is none.
            assert!(!taken || text.trim_ascii().is_empty(), "the agent takes it");
        }
    }
    for code in [1, 65] {
        let result = site_agent::parsers::result(code, bytes.to_vec());
        let made = site_api::parsers::result(command(), result.as_bytes()).unwrap();
        assert_eq!(made.outcome.as_str(), if code == 65 { "rejected" } else { "failed" });
    }
}

/// How deep a JSON text is, told by taking it apart; `None` where a name in it is no text, so that it
/// can't be.
fn depth(text: &str) -> Option<usize> {
    let mut level: Vec<&RawValue> = vec![serde_json::from_str(text).unwrap()];
    let mut depth = 0;
    loop {
        let mut below: Vec<&RawValue> = Vec::new();
        let mut deeper = false;
        for value in level {
            match value.get().as_bytes()[0] {
                b'[' => below.extend(serde_json::from_str::<Vec<&RawValue>>(value.get()).unwrap()),
                b'{' => below.extend(values(value.get())?),
                _ => continue,
            }
            deeper = true;
        }
        if !deeper {
            return Some(depth);
        }
        depth += 1;
        level = below;
    }
}

fn values(text: &str) -> Option<Vec<&RawValue>> {
    struct Values;
    impl<'de> serde::de::Visitor<'de> for Values {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(
            self,
            mut map: A,
        ) -> Result<Self::Value, A::Error> {
            let mut values = Vec::new();
            while let Some((IgnoredAny, value)) = map.next_entry()? {
                values.push(value);
            }
            Ok(values)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde::Deserializer::deserialize_map(&mut deserializer, Values).ok()
}

/// A result is kept to the byte, reads alike by the type of the wire, and is the same in a batch.
pub(crate) fn result(bytes: &[u8]) {
    batch(bytes);
    let result = match site_api::parsers::result(command(), bytes) {
        Ok(result) => result,
        Err(problem) => return assert_problem(&problem),
    };
    crate::taken();
    assert_reads_alike(&result, bytes);
    let sent = ResultToStore {
        command_id: COMMAND,
        seq: 1,
        chain_digest: Digest::ZERO,
        result: Bytes::copy_from_slice(bytes),
    };
    let batch = site_api::parsers::results(&site_client::parsers::batch(&[sent]).unwrap());
    let batch = batch.unwrap_or_else(|problem| panic!("in a batch: {:?}", problem.to_problem("")));
    assert_eq!((batch.len(), batch[0].body.as_str()), (1, result.body.as_str()));
    assert_eq!((batch[0].outcome, batch[0].output), (result.outcome, result.output));
}

fn batch(bytes: &[u8]) {
    match site_api::parsers::results(bytes) {
        Ok(results) => {
            assert!((1..=64).contains(&results.len()));
            for (index, result) in results.iter().enumerate() {
                let others = &results[..index];
                assert!(others.iter().all(|other| other.command != result.command));
                let body = result.body.as_str().as_bytes();
                let alone = site_api::parsers::result(result.command.clone(), body).unwrap();
                assert_eq!((alone.outcome, alone.output), (result.outcome, result.output));
                assert_reads_alike(result, body);
            }
        }
        Err(problem) => assert_problem(&problem),
    }
}

fn assert_reads_alike(result: &NewResult, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap().trim_matches([' ', '\t', '\n', '\r']);
    assert_eq!(result.body.as_str(), text);
    assert_eq!(site_client::result_digest(bytes).as_bytes(), result.body.digest().as_bytes());
    let wire: ResultBody = serde_json::from_str(text).unwrap();
    let outcome = serde_json::to_string(&wire.outcome).unwrap();
    assert_eq!(outcome.trim_matches('"'), result.outcome.as_str());
    let output = wire.private_output.map(|digest| *digest.as_bytes());
    assert_eq!(output, result.output.map(|digest| *digest.as_bytes()));
    assert!(wire.detail.is_none_or(|detail| detail.len() <= 4096));
}

/// What opens a session reads alike by the type of the wire.
pub(crate) fn session(bytes: &[u8]) {
    match site_api::parsers::session(bytes) {
        Ok((session, generation)) => {
            crate::taken();
            let wire: SessionRequest = serde_json::from_slice(bytes).unwrap();
            assert_eq!(wire.session_id, session.as_str());
            assert_eq!(wire.expected_generation, generation.get().unsigned_abs());
            let again = site_api::parsers::session(&serde_json::to_vec(&wire).unwrap()).unwrap();
            assert_eq!(again, (session, generation));
        }
        Err(problem) => assert_problem(&problem),
    }
}

fn command() -> CommandId {
    CommandId::parse(COMMAND).unwrap()
}
