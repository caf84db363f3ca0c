//! Messages that break HTTP, or stretch it.

use crate::support::{Case, Request};

/// Each with its name, made of a request that is in order.
pub(super) fn all(case: &Case, good: &Request) -> Vec<(&'static str, Vec<u8>)> {
    let whole = good.bytes();
    let path = case.path(&format!("cmd_{}", "0".repeat(32)));
    let line = |line: String| [line.as_bytes(), b"\r\nhost: localhost\r\n\r\n"].concat();
    let mut all = vec![
        ("HTTP/0.9", format!("GET {path}\r\n").into()),
        ("HTTP/1.0", line(format!("{} {path} HTTP/1.0", case.method))),
        ("HTTP/9.9", line(format!("{} {path} HTTP/9.9", case.method))),
        ("no version", line(format!("{} {path}", case.method))),
        ("no target", line(format!("{} HTTP/1.1", case.method))),
        ("only a line", format!("{} {path} HTTP/1.1\r\n", case.method).into()),
        ("nothing", Vec::new()),
        ("empty lines", b"\r\n\r\n\r\n\r\n".to_vec()),
        ("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec()),
        ("a TLS hello inside TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("zeros", vec![0; 20_000]),
        ("the letter A", vec![b'A'; 200_000]),
        ("a long target", line(format!("{} /{} HTTP/1.1", case.method, "x".repeat(100_000)))),
        ("a target with NUL", line(format!("{} {path}\0 HTTP/1.1", case.method))),
        ("a target with spaces", line(format!("{} {path} x HTTP/1.1", case.method))),
        ("a target in UTF-8", line(format!("{} {path}é HTTP/1.1", case.method))),
        ("an absolute target", line(format!("{} http://evil{path} HTTP/1.1", case.method))),
        ("an authority", line("CONNECT evil:443 HTTP/1.1".to_owned())),
        ("an asterisk", line("OPTIONS * HTTP/1.1".to_owned())),
        ("a method of a mebibyte", line(format!("{} / HTTP/1.1", "M".repeat(1024 * 1024)))),
        ("a method of its own", line(format!("STEAL {path} HTTP/1.1"))),
        ("bare line feeds", String::from_utf8_lossy(&whole).replace("\r\n", "\n").into()),
        ("two requests at once", [whole.as_slice(), &whole].concat()),
    ];
    all.extend(headers(good));
    all.extend(lengths(case, good));
    all
}

/// The request with headers that it must not have.
fn headers(good: &Request) -> Vec<(&'static str, Vec<u8>)> {
    let with = |name: &str, value: &str| good.clone().header(name, value).bytes();
    let mut many = good.clone();
    for number in 0..1000 {
        many = many.header(&format!("x-{number}"), "1");
    }
    vec![
        ("a thousand headers", many.bytes()),
        ("a large header", with("x-large", &"x".repeat(64 * 1024))),
        ("an injected header", with("x-request-id", "a\r\nauthorization: Bearer x")),
        ("an injected answer", with("x-request-id", "a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")),
        ("a strange request id", with("x-request-id", "<script>é\u{7f}")),
        ("a folded header", with("x-folded", "a\r\n b")),
        ("a header with NUL", with("x-nul", "a\0b")),
        ("a name with a space", with("x name", "1")),
        ("a name that is empty", with("", "1")),
        ("a second host", with("host", "evil")),
        ("an upgrade", with("upgrade", "h2c")),
        ("another method", with("x-http-method-override", "DELETE")),
        ("a forwarded path", with("x-original-url", "/healthz")),
        ("a range", with("range", "bytes=0-1")),
        ("a condition", with("if-none-match", "*")),
        ("no host", good.clone().without("host").bytes()),
    ]
}

/// The request with a body that is not as long as it says, or says it in two ways.
fn lengths(case: &Case, good: &Request) -> Vec<(&'static str, Vec<u8>)> {
    let bare = good.clone().without("content-length");
    let length = |value: &str| bare.clone().header("content-length", value).bytes();
    let coded = |coding: &str, body: &[u8]| {
        let mut request = bare.clone().header("transfer-encoding", coding);
        request.body = body.to_vec();
        request.bytes()
    };
    let chunked = |body: &[u8]| coded("chunked", body);
    let body = case.body.unwrap_or("{}");
    let whole = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let mut both =
        bare.clone().header("content-length", "3").header("transfer-encoding", "chunked");
    both.body = whole.clone().into();
    let asks = good.clone().header("expect", "100-continue");
    vec![
        ("a length that is too long", length("1000")),
        ("a length that is too short", length("3")),
        ("a negative length", length("-1")),
        ("a length with a sign", length("+2")),
        ("a huge length", length("18446744073709551616")),
        ("a length in hex", length("0x10")),
        (
            "two lengths",
            bare.clone().header("content-length", "2").header("content-length", "9").bytes(),
        ),
        ("a list of lengths", length("2, 9")),
        ("a length and chunks", both.bytes()),
        ("chunks that end early", chunked(b"ff\r\n{}")),
        ("chunks without an end", chunked(format!("{:x}\r\n{body}\r\n", body.len()).as_bytes())),
        ("a chunk of no size", chunked(b"x\r\n{}\r\n0\r\n\r\n")),
        ("a huge chunk", chunked(b"ffffffffffffffffff\r\n{}\r\n0\r\n\r\n")),
        ("a negative chunk", chunked(b"-2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk longer than it says", chunked(b"1\r\n{}\r\n0\r\n\r\n")),
        (
            "endless extensions",
            chunked(format!("2;{}\r\n{{}}\r\n", "x".repeat(100_000)).as_bytes()),
        ),
        ("endless trailers", chunked(format!("0\r\n{}\r\n", "a: b\r\n".repeat(20_000)).as_bytes())),
        ("an unknown coding", coded("gzip, chunked", whole.as_bytes())),
        ("chunks that are not last", coded("chunked, gzip", whole.as_bytes())),
        ("a coding twice", coded("chunked, chunked", whole.as_bytes())),
        ("an expectation without a body", asks.clone().body_left_out()),
        ("an expectation", asks.bytes()),
        ("another expectation", good.clone().header("expect", "200-ok").bytes()),
        ("a smuggled request", smuggled(good)),
    ]
}

/// A request that hides another behind the end of its body.
fn smuggled(good: &Request) -> Vec<u8> {
    let mut outer = good.clone().without("connection").without("content-length");
    outer = outer.header("content-length", "5").header("transfer-encoding", "chunked");
    outer.body = [b"0\r\n\r\n".as_slice(), &good.bytes()].concat();
    outer.bytes()
}
