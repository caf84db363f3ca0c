//! The side of a process that answers Runtimes.

use database::Pool;

use crate::{Binding, MemberId, ReadError, SiteId, store::Store};

/// Reads bindings, with the role `resource_provisioning_api`. Cloning shares the connections.
#[derive(Clone)]
pub struct Bindings {
    store: Store,
}

impl Bindings {
    /// Reads through `pool`.
    #[must_use]
    pub fn new(pool: Pool) -> Self {
        Self { store: Store::new(pool) }
    }

    /// The one binding of a member at a Site that is retained now.
    ///
    /// # Errors
    ///
    /// The database failed, or holds what is no binding.
    pub async fn retained(
        &self,
        site: &SiteId,
        member: &MemberId,
    ) -> Result<Option<Binding>, ReadError> {
        self.store.retained(site, member).await
    }
}
