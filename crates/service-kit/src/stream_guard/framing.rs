//! Where a request ends, and whether everybody on the way reads that alike.
//!
//! hyper takes a head that contradicts itself where RFC 9112 lets it choose: of a length and
//! chunks it forgets the length, of two hosts it tells both. A gateway on the way may choose
//! otherwise, and whoever chooses the body's end chooses the next request. So such a head is
//! refused here. What is no head at all is left to hyper, which says so.

use http::{Uri, uri::Authority};

/// Headers of one head at the most, as hyper has it.
pub(super) const MOST_HEADERS: usize = 100;

/// What the bytes after the last request are.
#[derive(Debug, PartialEq, Eq)]
pub enum Head {
    /// The beginning of a head, perhaps.
    Partial,
    /// A whole one of so many bytes.
    Whole {
        /// How many.
        bytes: usize,
        /// Where its request ends.
        body: BodyEnd,
    },
    /// A whole one that could be read in two ways; why, for a person.
    Refused(&'static str),
    /// No head.
    Unreadable,
}

/// Where the body of a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// After so many bytes.
    After(u64),
    /// Where its chunks say.
    Chunks,
}

/// Reads the first head in `bytes`.
#[must_use]
pub fn head(bytes: &[u8]) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Head::Partial,
        Err(_) => return Head::Unreadable,
    };
    let lines = bytes[..length].split(|byte| *byte == b'\n');
    let bare = lines.rev().skip(1).any(|line| line.last() != Some(&b'\r'));
    if bare {
        return Head::Refused("a line of the head ends without a carriage return");
    }
    let checked = host(&request).and_then(|()| body_end(&request));
    match checked {
        Ok(body) => Head::Whole { bytes: length, body },
        Err(reason) => Head::Refused(reason),
    }
}

/// RFC 9112, 3.2: exactly one `Host`, though HTTP/1.0 may have none; one that contradicts an
/// absolute target is nobody's mistake.
fn host(request: &httparse::Request<'_, '_>) -> Result<(), &'static str> {
    let mut hosts = values(request, "host");
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.trim_ascii(),
        (None, _) if request.version == Some(0) => return Ok(()),
        (None, _) => return Err("the header host is missing"),
        (Some(_), Some(_)) => return Err("the header host is there more than once"),
    };
    let authority = Authority::try_from(host).ok().filter(|_| !host.contains(&b'@'));
    if authority.is_none() && !host.is_empty() {
        return Err("the header host is not a host");
    }
    let target: Option<Uri> = request.path.and_then(|target| target.parse().ok());
    match target.as_ref().and_then(Uri::authority) {
        Some(named) if Some(named) != authority.as_ref() => {
            Err("the target names another host than the header host")
        }
        _ => Ok(()),
    }
}

/// RFC 9112, 6.1 and 6.2: one `Content-Length`, or chunks and nothing else, never both.
fn body_end(request: &httparse::Request<'_, '_>) -> Result<BodyEnd, &'static str> {
    let (mut lengths, mut codings) =
        (values(request, "content-length"), values(request, "transfer-encoding"));
    match (lengths.next(), codings.next()) {
        (None, None) => Ok(BodyEnd::After(0)),
        (Some(_), Some(_)) => Err("the head has a content-length and a transfer-encoding"),
        (Some(length), None) => {
            if lengths.next().is_some() {
                return Err("the header content-length is there more than once");
            }
            length_of(length.trim_ascii()).map(BodyEnd::After)
        }
        (None, Some(coding)) => {
            let chunked = coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
            if !chunked || codings.next().is_some() || request.version == Some(0) {
                return Err("a transfer-encoding other than chunked, once, is not taken");
            }
            Ok(BodyEnd::Chunks)
        }
    }
}

fn length_of(text: &[u8]) -> Result<u64, &'static str> {
    let decimal = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(text).ok().filter(|_| decimal);
    text.and_then(|text| text.parse().ok()).ok_or("the header content-length is not a number")
}

fn values<'a>(
    request: &'a httparse::Request<'_, '_>,
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> + 'a {
    let named = request.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.map(|header| header.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Head {
        head(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes())
    }

    fn whole(body: BodyEnd, lines: &[&str]) {
        let Head::Whole { bytes, body: end } = of(lines) else {
            panic!("{lines:?}: {:?}", of(lines))
        };
        assert_eq!((bytes, end), (lines.join("\r\n").len() + 4, body), "{lines:?}");
    }

    #[test]
    fn a_head_in_order_tells_where_its_body_ends() {
        whole(BodyEnd::After(0), &["GET / HTTP/1.1", "Host: a"]);
        whole(BodyEnd::After(0), &["GET / HTTP/1.1", "host:"]);
        whole(BodyEnd::After(0), &["GET http://a:1/ HTTP/1.1", "host: A:1"]);
        whole(BodyEnd::After(7), &["PUT / HTTP/1.1", "host: [::1]:8443", "Content-Length:  7 "]);
        whole(BodyEnd::Chunks, &["PUT / HTTP/1.1", "host: a", "transfer-encoding: Chunked"]);
        whole(BodyEnd::After(0), &["GET / HTTP/1.0"]);
        assert_eq!(head(b"\r\nGET / HTTP/1.1\r\nhost: a\r\n"), Head::Partial);
        assert_eq!(head(b"\0\0\r\n\r\n"), Head::Unreadable);
    }

    #[test]
    fn a_head_that_can_be_read_in_two_ways_is_refused() {
        for lines in [
            ["GET / HTTP/1.1", "x: 1", "y: 1"],
            ["GET / HTTP/1.1", "host: a", "Host: a"],
            ["GET / HTTP/1.0", "host: a", "Host: b"],
            ["GET / HTTP/1.1", "host: a b", "y: 1"],
            ["GET / HTTP/1.1", "host: user@a", "y: 1"],
            ["GET http://b/ HTTP/1.1", "host: a", "y: 1"],
            ["GET http://b/ HTTP/1.1", "host:", "y: 1"],
            ["PUT / HTTP/1.1\r\nhost: a", "content-length: 3", "transfer-encoding: chunked"],
            ["PUT / HTTP/1.1\r\nhost: a", "transfer-encoding: chunked", "content-length: 3"],
            ["PUT / HTTP/1.1\r\nhost: a", "content-length: 3", "content-length: 3"],
            ["PUT / HTTP/1.1", "host: a", "content-length: 3, 3"],
            ["PUT / HTTP/1.1", "host: a", "content-length: +3"],
            ["PUT / HTTP/1.1", "host: a", "content-length:"],
            ["PUT / HTTP/1.1", "host: a", "content-length: 18446744073709551616"],
            ["PUT / HTTP/1.1\r\nhost: a", "transfer-encoding: chunked", "transfer-encoding: x"],
            ["PUT / HTTP/1.1", "host: a", "transfer-encoding: gzip, chunked"],
            ["PUT / HTTP/1.1", "host: a", "transfer-encoding: chunked, chunked"],
            ["PUT / HTTP/1.0", "host: a", "transfer-encoding: chunked"],
            ["GET / HTTP/1.1\nhost: a", "x: 1", "y: 1"],
        ] {
            assert!(matches!(of(&lines), Head::Refused(_)), "{lines:?}: {:?}", of(&lines));
        }
    }
}
