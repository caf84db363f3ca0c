//! Messages that break HTTP, or stretch it.

use crate::support::{Caller, Case, Request};

/// A message, what is wrong with it, and its name.
pub(super) type Message = (Fault, &'static str, Vec<u8>);

/// What is wrong with a message, and so who refuses it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing that a server has to refuse: it is odd, and it may be in order.
    Nothing,
    /// It brings no token, or two: every route that asks who calls refuses it.
    Caller,
    /// Its body: every route that reads one refuses it.
    Body,
    /// Its head, or it is no request at all: refused wherever it goes.
    Head,
    /// Its head ends too early, so that it may get no answer.
    CutHead,
    /// Its body ends too early, so that it may get no answer of a route that reads it.
    CutBody,
}

impl Fault {
    /// Whether a message with this fault is never taken for a request to a route.
    pub(super) fn is_refused_at(self, case: &Case) -> bool {
        match self {
            Self::Nothing => false,
            Self::Caller => case.caller != Caller::Anyone,
            Self::Body | Self::CutBody => case.body.is_some(),
            Self::Head | Self::CutHead => true,
        }
    }

    /// Whether the end of the connection is not answer enough.
    pub(super) fn is_answered(self) -> bool {
        !matches!(self, Self::CutHead | Self::CutBody)
    }
}

/// All of them, made of a request that is in order.
///
/// They hold its whole body where they can, so that a server that is too lenient would take them
/// for the request.
pub(super) fn all(case: &Case, good: &Request) -> Vec<Message> {
    let whole = good.bytes();
    let path = case.path(&format!("cmd_{}", "0".repeat(32)));
    let line = |line: String| [line.as_bytes(), b"\r\nhost: localhost\r\n\r\n"].concat();
    let mut all = vec![
        (Fault::Head, "HTTP/0.9", format!("GET {path}\r\n").into()),
        (Fault::Caller, "HTTP/1.0", line(format!("{} {path} HTTP/1.0", case.method))),
        (Fault::Head, "HTTP/9.9", line(format!("{} {path} HTTP/9.9", case.method))),
        (Fault::Head, "no version", line(format!("{} {path}", case.method))),
        (Fault::Head, "no target", line(format!("{} HTTP/1.1", case.method))),
        (Fault::CutHead, "only a line", format!("{} {path} HTTP/1.1\r\n", case.method).into()),
        (Fault::CutHead, "nothing", Vec::new()),
        (Fault::CutHead, "empty lines", b"\r\n\r\n\r\n\r\n".to_vec()),
        (
            Fault::Head,
            "an HTTP/2 preface",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
        ),
        (
            Fault::Head,
            "a TLS hello inside TLS",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        ),
        (Fault::Head, "zeros", vec![0; 20_000]),
        (Fault::Head, "the letter A", vec![b'A'; 200_000]),
        (
            Fault::Head,
            "a long target",
            line(format!("{} /{} HTTP/1.1", case.method, "x".repeat(100_000))),
        ),
        (Fault::Head, "a target with NUL", line(format!("{} {path}\0 HTTP/1.1", case.method))),
        (Fault::Head, "a target with spaces", line(format!("{} {path} x HTTP/1.1", case.method))),
        (Fault::Head, "a target in UTF-8", line(format!("{} {path}é HTTP/1.1", case.method))),
        (
            Fault::Head,
            "an absolute target",
            line(format!("{} http://evil{path} HTTP/1.1", case.method)),
        ),
        (Fault::Head, "an authority", line("CONNECT evil:443 HTTP/1.1".to_owned())),
        (Fault::Head, "an asterisk", line("OPTIONS * HTTP/1.1".to_owned())),
        (
            Fault::Head,
            "a method of a mebibyte",
            line(format!("{} / HTTP/1.1", "M".repeat(1024 * 1024))),
        ),
        (Fault::Head, "a method of its own", line(format!("STEAL {path} HTTP/1.1"))),
        (
            Fault::Head,
            "bare line feeds",
            String::from_utf8_lossy(&whole).replace("\r\n", "\n").into(),
        ),
        (Fault::Nothing, "two requests at once", [whole.as_slice(), &whole].concat()),
    ];
    all.extend(headers(good));
    all.extend(lengths(good));
    all
}

/// The request with headers that it must not have.
fn headers(good: &Request) -> Vec<Message> {
    let with = |name: &str, value: &str| good.clone().header(name, value).bytes();
    let mut many = good.clone();
    for number in 0..1000 {
        many = many.header(&format!("x-{number}"), "1");
    }
    vec![
        (Fault::Head, "a thousand headers", many.bytes()),
        (Fault::Head, "a large header", with("x-large", &"x".repeat(64 * 1024))),
        (Fault::Caller, "an injected header", with("x-request-id", "a\r\nauthorization: Bearer x")),
        (
            Fault::Body,
            "an injected answer",
            with("x-request-id", "a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        ),
        (Fault::Head, "a strange request id", with("x-request-id", "<script>é\u{7f}")),
        (Fault::Head, "a folded header", with("x-folded", "a\r\n b")),
        (Fault::Head, "a header with NUL", with("x-nul", "a\0b")),
        (Fault::Head, "a name with a space", with("x name", "1")),
        (Fault::Head, "a name that is empty", with("", "1")),
        (Fault::Head, "a second host", with("host", "evil")),
        (Fault::Nothing, "an upgrade", with("upgrade", "h2c")),
        (Fault::Nothing, "another method", with("x-http-method-override", "DELETE")),
        (Fault::Nothing, "a forwarded path", with("x-original-url", "/healthz")),
        (Fault::Nothing, "a range", with("range", "bytes=0-1")),
        (Fault::Nothing, "a condition", with("if-none-match", "*")),
        (Fault::Head, "no host", good.clone().without("host").bytes()),
    ]
}

/// The request with a body that is not as long as it says, or says it in two ways.
fn lengths(good: &Request) -> Vec<Message> {
    let bare = good.clone().without("content-length");
    let length = |value: &str| bare.clone().header("content-length", value).bytes();
    let coded = |coding: &str, body: &[u8]| {
        let mut request = bare.clone().header("transfer-encoding", coding);
        request.body = body.to_vec();
        request.bytes()
    };
    let chunked = |body: &[u8]| coded("chunked", body);
    let body = if good.body.is_empty() { b"{}" } else { good.body.as_slice() };
    let body = std::str::from_utf8(body).unwrap();
    // One chunk with the whole body, whatever is said of its size.
    let one_chunk = |size: &str| format!("{size}\r\n{body}\r\n0\r\n\r\n");
    let sized = |size: &str| chunked(one_chunk(size).as_bytes());
    let whole = one_chunk(&format!("{:x}", body.len()));
    let mut both =
        bare.clone().header("content-length", "3").header("transfer-encoding", "chunked");
    both.body = whole.clone().into();
    let asks = good.clone().header("expect", "100-continue");
    vec![
        (Fault::CutBody, "a length that is too long", length("1000")),
        (Fault::Body, "a length that is too short", length("3")),
        (Fault::Head, "a negative length", length("-1")),
        (Fault::Head, "a length with a sign", length(&format!("+{}", body.len()))),
        (Fault::Head, "a huge length", length("18446744073709551616")),
        (Fault::Head, "a length in hex", length(&format!("{:#x}", body.len()))),
        (
            Fault::Head,
            "two lengths",
            bare.clone()
                .header("content-length", &body.len().to_string())
                .header("content-length", "9")
                .bytes(),
        ),
        (Fault::Head, "a list of lengths", length(&format!("{}, 9", body.len()))),
        (Fault::Head, "a length and chunks", both.bytes()),
        (Fault::CutBody, "chunks that end early", chunked(format!("ff\r\n{body}").as_bytes())),
        (
            Fault::CutBody,
            "chunks without an end",
            chunked(format!("{:x}\r\n{body}\r\n", body.len()).as_bytes()),
        ),
        (Fault::Body, "a chunk of no size", sized("x")),
        (Fault::Body, "a huge chunk", sized("ffffffffffffffffff")),
        (Fault::Body, "a negative chunk", sized(&format!("-{:x}", body.len()))),
        (Fault::Body, "a chunk longer than it says", sized("1")),
        (
            Fault::Body,
            "endless extensions",
            sized(&format!("{:x};{}", body.len(), "x".repeat(100_000))),
        ),
        (
            Fault::Body,
            "endless trailers",
            chunked(
                whole
                    .replace("\r\n\r\n", &format!("\r\n{}\r\n", "a: b\r\n".repeat(20_000)))
                    .as_bytes(),
            ),
        ),
        (Fault::Head, "an unknown coding", coded("gzip, chunked", whole.as_bytes())),
        (Fault::Head, "chunks that are not last", coded("chunked, gzip", whole.as_bytes())),
        (Fault::Head, "a coding twice", coded("chunked, chunked", whole.as_bytes())),
        (Fault::CutBody, "an expectation without a body", asks.clone().body_left_out()),
        (Fault::Nothing, "an expectation", asks.bytes()),
        (Fault::Nothing, "another expectation", good.clone().header("expect", "200-ok").bytes()),
        (Fault::Head, "a smuggled request", smuggled(good)),
    ]
}

/// A request that hides another behind the end of its body.
fn smuggled(good: &Request) -> Vec<u8> {
    let mut outer = good.clone().without("connection").without("content-length");
    outer = outer.header("content-length", "5").header("transfer-encoding", "chunked");
    outer.body = [b"0\r\n\r\n".as_slice(), &good.bytes()].concat();
    outer.bytes()
}
