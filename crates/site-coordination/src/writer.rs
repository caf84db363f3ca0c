//! Who writes in a stream: its generation, and from the second on the session that opened it.

use crate::{Generation, Invalid};

/// The id of a session: 16 to 64 of letters, digits, `_` and `-`, made at random by a Runtime for one
/// start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// Takes a text that is a session's id.
    ///
    /// # Errors
    ///
    /// The rule that it broke.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if (16..=64).contains(&text.len()) && text.bytes().all(inner) {
            return Ok(Self(text.to_owned()));
        }
        Err(Invalid("a session's id is 16 to 64 letters, digits, '_' and '-'"))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A Runtime as it presents itself with each poll and result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    generation: Generation,
    session: Option<SessionId>,
}

impl Writer {
    /// The writer of generation 1, which exists from the start and has no session.
    pub const FIRST: Self = Self { generation: Generation::FIRST, session: None };

    /// Takes a generation with its session.
    ///
    /// # Errors
    ///
    /// Generation 1 with a session, or a higher one without.
    pub fn new(generation: Generation, session: Option<SessionId>) -> Result<Self, Invalid> {
        match (generation == Generation::FIRST, &session) {
            (true, Some(_)) => Err(Invalid("generation 1 has no session")),
            (false, None) => Err(Invalid("a generation above 1 needs its session")),
            (true, None) | (false, Some(_)) => Ok(Self { generation, session }),
        }
    }

    /// The generation that it writes with.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Its session; `None` in generation 1.
    #[must_use]
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    /// How it stands to the writer that the stream has.
    pub(crate) fn standing(&self, current: &Self) -> Standing {
        if self == current {
            Standing::Current
        } else if self.generation > current.generation {
            Standing::Above
        } else {
            // Also another session of the same generation: there was one before a restore.
            Standing::Stale
        }
    }

    pub(crate) fn from_session(generation: Generation, session: SessionId) -> Self {
        Self { generation, session: Some(session) }
    }

    pub(crate) fn from_database(generation: i64, session: Option<String>) -> Self {
        Self { generation: Generation::from_database(generation), session: session.map(SessionId) }
    }
}

/// How a writer stands to the one that the stream has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Current,
    /// Another Runtime took the stream over.
    Stale,
    /// The stream does not know the generation yet: the database was restored.
    Above,
}
