//! A JSON object whose members are there once, taken out one after the other.

use std::collections::HashMap;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::grants::Entries;

/// The members that were not taken out yet. Those that nobody asks for are not looked into.
pub(super) struct Members<'a>(HashMap<String, &'a RawValue>);

/// A member is there and of another type; `null` is one. The value is not repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongType;

impl<'a> Members<'a> {
    /// `None` for what is no object, and for one that has a member twice: two readers could take it
    /// for two things.
    pub(super) fn read(json: &'a [u8]) -> Option<Self> {
        Self::once(serde_json::from_slice(json).ok()?)
    }

    /// As [`Members::read`], of a value within other JSON.
    pub(super) fn of(value: &'a RawValue) -> Option<Self> {
        Self::once(serde_json::from_str(value.get()).ok()?)
    }

    fn once(Entries(entries): Entries<'a>) -> Option<Self> {
        let count = entries.len();
        let members: HashMap<_, _> = entries.into_iter().collect();
        (members.len() == count).then_some(Self(members))
    }

    /// Whether a member is there, whatever it holds.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The exact text of a member.
    pub(super) fn raw(&mut self, name: &str) -> Option<&'a RawValue> {
        self.0.remove(name)
    }

    /// A member that may be absent.
    pub(super) fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, WrongType> {
        match self.raw(name) {
            None => Ok(None),
            Some(value) => serde_json::from_str(value.get()).map(Some).map_err(|_| WrongType),
        }
    }
}
