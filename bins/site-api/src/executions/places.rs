//! Places for who reads private outputs: so many at once, and a part of them for one member.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use callers::login::MemberName;

/// Outputs that are read at once: each costs a part or two in memory.
pub(crate) const PLACES: usize = 16;
/// Those of them that one member may have: slow readers of one leave places for others.
pub(crate) const PLACES_OF_A_MEMBER: usize = 4;

/// Who reads how many. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Places(Arc<Mutex<HashMap<MemberName, usize>>>);

/// A place of a member, free again when it is dropped.
pub(crate) struct Place {
    places: Places,
    member: MemberName,
}

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Full {
    /// All are taken.
    #[error("too many outputs are read at once")]
    Everybody,
    /// The member has as many as one may have.
    #[error("the member reads {PLACES_OF_A_MEMBER} outputs already, as many as one may at once")]
    Member,
}

impl Places {
    /// Takes a place for a member, if there is one.
    pub(crate) fn take(&self, member: &MemberName) -> Result<Place, Full> {
        let mut held = self.held();
        if held.values().sum::<usize>() >= PLACES {
            return Err(Full::Everybody);
        }
        let own = held.entry(member.clone()).or_default();
        if *own >= PLACES_OF_A_MEMBER {
            return Err(Full::Member);
        }
        *own += 1;
        Ok(Place { places: self.clone(), member: member.clone() })
    }

    fn held(&self) -> MutexGuard<'_, HashMap<MemberName, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held();
        if let Some(own) = held.get_mut(&self.member) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.member);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: usize) -> MemberName {
        MemberName::parse(&format!("member-{number}")).unwrap()
    }

    #[test]
    fn a_member_has_a_part_of_the_places_and_everybody_all_of_them() {
        let places = Places::default();
        let mut taken = Vec::new();
        for number in 0..PLACES / PLACES_OF_A_MEMBER {
            for _ in 0..PLACES_OF_A_MEMBER {
                taken.push(places.take(&member(number)).unwrap());
            }
            if taken.len() < PLACES {
                assert_eq!(places.take(&member(number)).err(), Some(Full::Member));
            }
        }
        assert_eq!(taken.len(), PLACES);
        assert_eq!(places.take(&member(99)).err(), Some(Full::Everybody));
        drop(taken.pop());
        assert!(places.take(&member(99)).is_ok());
        drop(taken);
        // Nothing is kept of who has left.
        assert!(places.held().is_empty());
    }
}
