//! Many keys at once.

use std::collections::HashMap;

use database::DatabaseError;
use ring::rand::SecureRandom;

use super::{Done, Registry, added, new_id};
use crate::{AddKeyError, KeyEnd, KeyState, NewKey, ReadError, StoredKey};

/// What became of a key.
type Outcome = Result<Done<StoredKey>, AddKeyError>;

impl Registry {
    /// Keys that are stored by one statement.
    pub const MOST_AT_ONCE: usize = 500;

    /// Adds keys, each as [`Registry::add_key`] does, and returns what became of each, in their order.
    /// Those that are plainly new are stored together, [`Registry::MOST_AT_ONCE`] by a statement.
    ///
    /// # Errors
    ///
    /// The database or the random source failed. Some may be added; adding the same again is safe. Why
    /// one key alone was refused is in its place among the others.
    pub async fn add_keys(
        &self,
        new: &[NewKey],
        random: &(dyn SecureRandom + Sync),
    ) -> Result<Vec<Outcome>, AddKeyError> {
        let mut outcomes = Vec::with_capacity(new.len());
        for part in new.chunks(Self::MOST_AT_ONCE) {
            self.add_part(part, random, &mut outcomes).await?;
        }
        Ok(outcomes)
    }

    async fn add_part(
        &self,
        new: &[NewKey],
        random: &(dyn SecureRandom + Sync),
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), AddKeyError> {
        let ids = new.iter().map(|_| new_id(random)).collect::<Result<Vec<_>, _>>()?;
        let stored: HashMap<_, _> = match self.store.add_keys(&ids, new).await {
            Ok(stored) => stored.into_iter().collect(),
            // Somebody added one of them at this moment, and nothing was stored.
            Err(ReadError::Database(DatabaseError::UniqueViolation { .. })) => HashMap::new(),
            Err(error) => return Err(error.into()),
        };
        if !stored.is_empty() {
            self.announce_change().await;
        }
        let left = ids.iter().zip(new).filter(|(id, _)| !stored.contains_key(*id));
        let known = self.store.same_keys(left.map(|(_, new)| new)).await?;
        let place = |key: &StoredKey| (key.member.clone(), key.key.clone());
        let known: HashMap<_, _> = known.into_iter().map(|key| (place(&key), key)).collect();
        for (id, new) in ids.iter().zip(new) {
            if let Some(at) = stored.get(id) {
                outcomes.push(Ok(Done { value: added(id.clone(), new, *at), new: true }));
                continue;
            }
            let end = new.end.map(KeyEnd::time);
            let same = known.get(&(new.member.clone(), new.key.clone()));
            match same.filter(|same| same.state == KeyState::Active && same.expires_at == end) {
                Some(same) => outcomes.push(Ok(Done { value: same.clone(), new: false })),
                // Whatever it is that is in its way.
                None => match self.add_key(new, random).await {
                    Err(error @ (AddKeyError::Random | AddKeyError::Read(_))) => return Err(error),
                    outcome => outcomes.push(outcome),
                },
            }
        }
        Ok(())
    }
}
