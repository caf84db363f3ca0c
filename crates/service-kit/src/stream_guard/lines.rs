//! When a head that comes in pieces is worth reading as a whole.
//!
//! Whoever reads all that has come at each line reads a head of many short lines again and again.
//! Here each line is read when it is whole, by hyper's own parser, and once or twice before where it
//! is long; [`super::framing::head`] judges what is left to judge, once.

/// How far a head is in order that is not whole yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Where the line begins that is not whole yet.
    line: usize,
    /// How many header lines are before it; none before the request line.
    headers: Option<usize>,
    /// Up to where line ends were looked for.
    searched: usize,
    /// How much had come when its line was read last.
    read: usize,
    /// How many bytes were read so far, over and over.
    #[cfg(test)]
    pub(super) work: usize,
}

/// Headers of one head at the most, as in [`super::framing`].
const MOST_HEADERS: usize = super::framing::MOST_HEADERS;

impl Lines {
    /// Whether all that has come is to be judged: the head is whole, or it is none. `bytes` is all of
    /// it each time, from the head's first byte.
    pub(crate) fn are_to_be_judged(&mut self, bytes: &[u8]) -> bool {
        let ends = bytes[self.searched..].contains(&b'\n');
        self.searched = bytes.len();
        let (now, before) = (bytes.len() - self.line, self.read - self.line);
        if !ends && (now == before || now < 2 * before) {
            return false;
        }
        self.read = bytes.len();
        self.worked(now);
        !self.is_in_order(&bytes[self.line..])
    }

    /// Notes the work of reading so many bytes.
    pub(super) fn worked(&mut self, bytes: usize) {
        #[cfg(test)]
        {
            self.work += bytes;
        }
        let _ = bytes;
    }

    /// Reads the lines that have come since; false where there is nothing more to wait for.
    fn is_in_order(&mut self, mut part: &[u8]) -> bool {
        if self.headers.is_none() {
            // Empty lines may come before it.
            let empty = part.iter().take_while(|byte| b"\r\n".contains(byte)).count();
            let end =
                part[empty..].iter().position(|byte| *byte == b'\n').map(|end| empty + end + 1);
            let line = &part[..end.unwrap_or(part.len())];
            if !matches!(httparse::Request::new(&mut []).parse(line), Ok(httparse::Status::Partial))
            {
                return false;
            }
            let Some(end) = end else {
                // A carriage return may wait for its line feed.
                let passed = part[..empty].iter().rposition(|byte| *byte == b'\n');
                self.line += passed.map_or(0, |last| last + 1);
                return true;
            };
            self.line += end;
            self.headers = Some(0);
            part = &part[end..];
        }
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        if !matches!(httparse::parse_headers(part, &mut headers), Ok(httparse::Status::Partial)) {
            return false;
        }
        let lines = part.iter().filter(|byte| **byte == b'\n').count();
        let last = part.iter().rposition(|byte| *byte == b'\n');
        self.line += last.map_or(0, |last| last + 1);
        let headers = self.headers.unwrap_or(0) + lines;
        self.headers = Some(headers);
        headers <= MOST_HEADERS
    }
}
