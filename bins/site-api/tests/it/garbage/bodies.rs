//! Bodies that are no result.

const NESTED: usize = 100_000;
const MIB: usize = 1024 * 1024;

/// Each with its name. None of them is a result, however leniently it is read.
pub(super) fn all() -> Vec<(String, Vec<u8>)> {
    let good = r#"{"outcome":"succeeded","detail":"x","output":[{"a":1}]}"#;
    let cut = (0..good.len()).map(|end| (format!("a body of {end} bytes"), good[..end].into()));
    cut.chain(others().into_iter().map(|(name, body)| (name.to_owned(), body))).collect()
}

fn others() -> Vec<(&'static str, Vec<u8>)> {
    let with = |output: &str| format!(r#"{{"outcome":"succeeded","output":{output}}}"#).into();
    let many: Vec<_> = (0..50_000).map(|n| format!("\"f{n}\":0")).collect();
    let text = "x".repeat(MIB - 64);
    vec![
        ("open brackets", "[".repeat(NESTED).into()),
        ("open braces", "{\"a\":".repeat(NESTED).into()),
        ("open brackets in a field", with(&"[".repeat(NESTED))),
        ("brackets for an outcome", nested(r#"{"outcome":"#)),
        ("brackets for a field that is none", nested(r#"{"outcome":"failed","x":"#)),
        ("an output one level too deep", with(&["[".repeat(128), "]".repeat(128)].concat())),
        ("closed brackets", "]".repeat(NESTED).into()),
        ("a field twice", r#"{"outcome":"succeeded","outcome":"succeeded"}"#.into()),
        ("a field twice, once escaped", r#"{"outcome":"failed","\u006futcome":"failed"}"#.into()),
        ("an output twice", r#"{"outcome":"failed","output":1,"output":1}"#.into()),
        ("fifty thousand fields", format!("{{{}}}", many.join(",")).into()),
        ("NUL", b"\0".to_vec()),
        ("NUL in a string", with("\"\0\"")),
        ("NUL after the end", b"{\"outcome\":\"failed\"}\0".to_vec()),
        ("a byte order mark", "\u{feff}{\"outcome\":\"failed\"}".into()),
        ("UTF-16", "{\"outcome\":\"failed\"}".encode_utf16().flat_map(u16::to_be_bytes).collect()),
        ("no UTF-8", b"{\"outcome\":\"failed\",\"output\":\"\xff\xfe\"}".to_vec()),
        ("no UTF-8 in a name", b"{\"outcome\":\"failed\",\"\xc3\":1}".to_vec()),
        ("an overlong slash", b"{\"outcome\":\"failed\",\"output\":\"\xc0\xaf\"}".to_vec()),
        ("a surrogate in UTF-8", b"{\"outcome\":\"failed\",\"output\":\"\xed\xa0\x80\"}".to_vec()),
        ("half an outcome's surrogate", r#"{"outcome":"\ud800"}"#.into()),
        ("half a detail's surrogate", r#"{"outcome":"failed","detail":"\udc00\ud800"}"#.into()),
        ("half a name's surrogate", r#"{"outcome":"failed","\ud83d":1}"#.into()),
        ("a huge outcome", format!(r#"{{"outcome":{}}}"#, "9".repeat(100_000)).into()),
        ("a huge exponent", r#"{"outcome":1e999999999}"#.into()),
        ("a number that is none", with("01")),
        ("infinity", with("Infinity")),
        ("a sign alone", with("-")),
        ("a string of a mebibyte for an outcome", format!(r#"{{"outcome":"{text}"}}"#).into()),
        ("a detail of a mebibyte", format!(r#"{{"outcome":"failed","detail":"{text}"}}"#).into()),
        ("a name of a mebibyte", format!(r#"{{"outcome":"failed","{text}":1}}"#).into()),
        ("white space of a mebibyte", " ".repeat(MIB).into()),
        ("a comment", "{\"outcome\":\"failed\"} // done".into()),
        ("two bodies", "{\"outcome\":\"failed\"}\n{\"outcome\":\"failed\"}".into()),
        ("XML", "<outcome>succeeded</outcome>".into()),
        ("a form", "outcome=succeeded".into()),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec()),
        ("escapes that are none", with(r#""\x41""#)),
        ("half an escape", with(r#""\u00""#)),
        ("a control character", with("\"\u{1b}[2J\"")),
    ]
}

/// A value of a hundred thousand brackets, all closed again.
fn nested(before: &str) -> Vec<u8> {
    format!("{before}{}{}}}", "[".repeat(NESTED), "]".repeat(NESTED)).into()
}
