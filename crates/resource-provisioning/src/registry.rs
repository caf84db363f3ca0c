//! The side of the control plane: which bindings are retained and released.

use database::Pool;

use crate::{
    Binding, BindingId, MemberId, NewBinding, ReadError, ReleaseError, RetainError, SiteId,
    store::Store,
};

/// Writes bindings, with the role `resource_provisioning_writer`. Cloning shares the connections.
///
/// Each call may be repeated: it then changes nothing and says so. What an answer tells is durable.
#[derive(Clone)]
pub struct Registry {
    store: Store,
}

/// What a call did, or found done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The binding as it is now.
    pub binding: Binding,
    /// Whether this call did it. False also where it did and the answer got lost between the
    /// database and this process, so that the statement was repeated.
    pub new: bool,
}

/// Which bindings of a Site are listed.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Only those of this member.
    pub member: Option<MemberId>,
    /// Also those that were released.
    pub released: bool,
    /// Only those after this one.
    pub after: Option<BindingId>,
    /// At most so many.
    pub limit: u16,
}

impl Registry {
    /// How often a binding is tried to be retained when others release one at the same moment.
    const TRIES: usize = 8;

    /// Works through `pool`.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { store: Store::new(pool) }
    }

    /// Retains a binding. The same values while they are retained are the same binding.
    ///
    /// # Errors
    ///
    /// [`RetainError::Conflict`] where another one of the member is retained at the Site.
    pub async fn retain(&self, wanted: NewBinding) -> Result<Done, RetainError> {
        for _ in 0..Self::TRIES {
            let stored = self.store.retain(wanted.clone()).await.map_err(ReadError::from)?;
            if let Some((id, retained_at)) = stored {
                let binding = Binding { id, retained: wanted, retained_at, released_at: None };
                return Ok(Done { binding, new: true });
            }
            match self.store.retained(&wanted.site, &wanted.member).await? {
                Some(binding) if binding.retained == wanted => {
                    return Ok(Done { binding, new: false });
                }
                Some(binding) => return Err(RetainError::Conflict { retained: binding.id }),
                // It was released in between.
                None => {}
            }
        }
        Err(RetainError::Contended)
    }

    /// Releases a binding, for ever. It names one, not whatever the member has: a call that is
    /// repeated late never ends a newer one.
    ///
    /// # Errors
    ///
    /// The binding is unknown.
    pub async fn release(&self, id: BindingId) -> Result<Done, ReleaseError> {
        let new = self.store.release(id).await.map_err(ReadError::from)?;
        let binding = self.store.binding(id).await?.ok_or(ReleaseError::UnknownBinding)?;
        Ok(Done { binding, new })
    }

    /// Bindings of a Site in the order in which they were retained.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no binding.
    pub async fn list(&self, site: &SiteId, listing: &Listing) -> Result<Vec<Binding>, ReadError> {
        self.store.list(site, listing).await
    }
}
