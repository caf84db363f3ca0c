//! The bounds of a listener, in one place.

use std::time::Duration;

/// What connections may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once. 1,024 by default. When there are so many, a new one takes the place of
    /// one that nobody has vouched for ([`crate::Call::vouch`]), or else of one without a request;
    /// where there is none either, it waits.
    pub connections: usize,
    /// The TLS handshake, from the accepted connection on. 5 s by default.
    pub handshake: Duration,
    /// A request's head, from its first byte to its last. 10 s by default.
    pub head: Duration,
    /// A request's head, in bytes; a larger one is answered with 431. 16 KiB by default, at least
    /// 8 KiB.
    pub head_bytes: usize,
    /// A connection without a request. 75 s by default.
    pub idle: Duration,
    /// A write that makes no progress. 30 s by default.
    pub stalled_write: Duration,
    /// What a closed connection may still send before its socket goes away, so that the last
    /// answer is not lost to a reset. 1 s by default.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(10),
            head_bytes: 16 * 1024,
            idle: Duration::from_secs(75),
            stalled_write: Duration::from_secs(30),
            linger: Duration::from_secs(1),
        }
    }
}
