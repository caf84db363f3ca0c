//! Who writes: the generation and the session that each call presents.

use site_protocol::Session;

/// The generation of a Runtime, and its session.
///
/// Generation 1 exists from the start and has no session; every later one is a session's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    generation: u64,
    session_id: Option<String>,
}

impl Writer {
    /// The writer of generation 1, for a Runtime that opens no session.
    pub const FIRST: Self = Self { generation: 1, session_id: None };

    /// The writer that an opened session makes.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        Self { generation: session.generation, session_id: Some(session.session_id.clone()) }
    }

    /// The generation, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The session's id; none in generation 1.
    #[must_use]
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }
}
