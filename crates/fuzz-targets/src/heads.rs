//! What a request begins with: where it ends, and what its query and its headers ask for.

use std::{
    cell::RefCell,
    convert::Infallible,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, rt, server::conn::http1, service::service_fn};
use service_kit::{
    ProblemReply, RequestId,
    parsers::{self, BodyEnd, Head},
};
use site_coordination::{Generation, PollRequest};
use site_protocol::{RUNTIME_GENERATION_HEADER, RUNTIME_SESSION_HEADER};

/// The longest body with which the end of a request is tried.
const LONGEST_BODY: u64 = 64 * 1024;

/// Our reading of a head and hyper's agree on where its request ends. hyper may refuse more.
pub(crate) fn head(bytes: &[u8]) {
    if bytes.len() > 16 * 1024 {
        return;
    }
    let (read, judged_at) = (parsers::head(bytes), parsers::judged_at(bytes));
    match read {
        Head::Partial => assert_eq!(judged_at, None),
        Head::Whole { bytes: length, .. } => assert_eq!(judged_at, Some(length)),
        Head::Refused(_) => assert!(judged_at.is_some()),
        Head::Unreadable => assert!(judged_at.is_some() || !bytes.ends_with(b"\n")),
    }
    match read {
        // Given on as it is, so hyper must not find a request in it.
        Head::Unreadable | Head::Partial => assert_eq!(by_hyper(bytes), []),
        Head::Refused(reason) => assert!(!reason.is_empty()),
        Head::Whole { bytes: length, body: BodyEnd::Chunks } => {
            let rest = b"3\r\nabc\r\n0\r\n\r\nGET /second HTTP/1.1\r\nhost: s\r\n\r\n";
            let seen = by_hyper(&[&bytes[..length], rest].concat());
            assert!(seen.first().is_none_or(|first| first.body.as_deref() == Some(b"abc")));
            assert!(seen.len() <= 2 && seen.iter().skip(1).all(Seen::is_second), "{seen:?}");
        }
        Head::Whole { bytes: length, body: BodyEnd::After(body) } => {
            crate::taken();
            assert!(length <= bytes.len());
            // It is the first head in the bytes, whatever follows.
            assert_eq!(parsers::head(&bytes[..length]), parsers::head(bytes));
            if body > LONGEST_BODY {
                return;
            }
            let body = vec![b'G'; usize::try_from(body).unwrap()];
            let second: &[u8] = b"GET /second HTTP/1.1\r\nhost: s\r\n\r\n";
            let seen = by_hyper(&[&bytes[..length], &body, second].concat());
            assert!(seen.first().is_none_or(|first| first.body.as_ref() == Some(&body)));
            assert!(seen.len() <= 2 && seen.iter().skip(1).all(Seen::is_second), "{seen:?}");
        }
    }
}

/// A request as hyper tells it.
#[derive(Debug, PartialEq)]
struct Seen {
    target: String,
    body: Option<Vec<u8>>,
}

impl Seen {
    fn is_second(&self) -> bool {
        self.target == "/second" && self.body.as_deref() == Some(b"")
    }
}

/// The requests that hyper finds in the bytes of one connection, with the settings of our listener.
fn by_hyper(bytes: &[u8]) -> Vec<Seen> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    let service = service_fn(move |request: Request<Incoming>| {
        let noted = Rc::clone(&noted);
        async move {
            let target = request.uri().to_string();
            let body = request.into_body().collect().await;
            let body = body.ok().map(|body| body.to_bytes().to_vec());
            noted.borrow_mut().push(Seen { target, body });
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
        }
    });
    let stream = Stream { input: bytes.to_vec(), at: 0 };
    let mut connection = http1::Builder::new()
        .max_header_size(16 * 1024)
        .max_buf_size(16 * 1024)
        .serve_connection(stream, service);
    // Nothing ever waits here but for its own turn.
    for _ in 0..1_000 {
        if (&mut connection).now_or_never().is_some() {
            break;
        }
    }
    drop(connection);
    Rc::try_unwrap(seen).unwrap().into_inner()
}

/// Bytes that are all there, and a peer that takes every answer.
struct Stream {
    input: Vec<u8>,
    at: usize,
}

impl rt::Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: rt::ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        let most = buffer.remaining().min(self.input.len() - self.at);
        buffer.put_slice(&self.input[self.at..self.at + most]);
        self.at += most;
        Poll::Ready(Ok(()))
    }
}

impl rt::Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The first line is a query, each further one a header. What is taken can be asked for in the one
/// spelling that a client has for it.
pub(crate) fn poll(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let Ok(uri) = format!("/?{}", lines.next().unwrap_or_default()).parse::<Uri>() else { return };
    let mut headers = HeaderMap::new();
    for line in lines.take(64) {
        let Some((name, value)) = line.split_once(": ") else { continue };
        let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value))
        else {
            continue;
        };
        if let Some(id) = RequestId::parse(&value) {
            assert_eq!((id.as_str(), id.as_str().len() <= 64), (value.to_str().unwrap(), true));
        }
        if parsers::is_json(value.to_str().unwrap_or_default()) {
            assert!(value.to_str().unwrap().to_ascii_lowercase().contains("application/json"));
        }
        headers.append(name, value);
    }
    match asked(&uri, headers) {
        Ok(request) => {
            crate::taken();
            assert!(request.limit <= 64 && request.wait <= Duration::from_secs(25));
            assert!(request.cancel_rev <= i64::MAX.unsigned_abs());
            let (uri, headers) = spelled(&request);
            let again = asked(&uri, headers).unwrap();
            assert_eq!(format!("{again:?}"), format!("{request:?}"));
        }
        Err(problem) => assert_problem(&problem),
    }
    match site_api::parsers::next(&uri) {
        Ok(Some(next)) => assert!((1..=64).contains(&next.limit)),
        Ok(None) => assert_eq!(uri.query().unwrap_or_default().trim_matches('&'), ""),
        Err(problem) => assert_problem(&problem),
    }
}

fn asked(uri: &Uri, headers: HeaderMap) -> Result<PollRequest, ProblemReply> {
    let (mut head, ()) = Request::new(()).into_parts();
    (head.uri, head.headers) = (uri.clone(), headers);
    site_api::parsers::poll(&head)
}

/// As `site-client` asks.
fn spelled(request: &PollRequest) -> (Uri, HeaderMap) {
    let PollRequest { writer, after, after_digest, cancel_rev, limit, wait, .. } = request;
    let (after, wait) = (after.get(), wait.as_secs());
    let mut uri = format!("/?after={after}&limit={limit}&wait={wait}");
    if *cancel_rev > 0 {
        uri.push_str(&format!("&cancelRev={cancel_rev}"));
    }
    if let Some(digest) = after_digest {
        uri.push_str(&format!("&afterDigest={digest}"));
    }
    let mut headers = HeaderMap::new();
    let generation = writer.generation();
    assert_eq!(Generation::parse(&generation.get().to_string()), Ok(generation));
    headers.insert(RUNTIME_GENERATION_HEADER, generation.get().into());
    if let Some(session) = writer.session() {
        headers.insert(RUNTIME_SESSION_HEADER, session.as_str().parse().unwrap());
    }
    (uri.parse().unwrap(), headers)
}

/// A refusal is one of the protocol, and its length is not whatever its cause likes.
pub(crate) fn assert_problem(problem: &ProblemReply) {
    let wire = problem.to_problem("id");
    assert_eq!(wire.status, problem.code().status());
    assert!((400..500).contains(&wire.status), "{wire:?}");
    assert!(wire.fields.len() <= 32);
    assert!(wire.fields.iter().all(|field| field.field.chars().count() <= 64));
    assert!(serde_json::to_vec(&wire).unwrap().len() <= 32 * 1024);
}
