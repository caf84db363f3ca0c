//! The only file that runs statements.

use chrono::{DateTime, Utc};
use database::{DatabaseError, Pool};

use crate::{
    Account, Binding, BindingId, Gid, Invalid, Listing, MemberId, NewBinding, ReadError, SiteId,
    Uid, UnixUser,
    statements::{BindingRow, ListBindings, ReadBinding, ReadRetained, Release, Retain},
};

/// Statements of this context over one pool.
#[derive(Clone)]
pub(crate) struct Store {
    pool: Pool,
}

impl Store {
    pub(crate) fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Retains a binding; `None` where the member has one at the Site.
    pub(crate) async fn retain(
        &self,
        binding: NewBinding,
    ) -> Result<Option<(BindingId, DateTime<Utc>)>, DatabaseError> {
        let row = self.pool.load(Retain(binding)).await?.into_iter().next();
        Ok(row.map(|(id, at)| (BindingId::from_database(id), at)))
    }

    /// Releases a binding, and returns whether it did: it may be absent, or released already.
    pub(crate) async fn release(&self, id: BindingId) -> Result<bool, DatabaseError> {
        Ok(!self.pool.load(Release { id: id.get() }).await?.is_empty())
    }

    /// A binding, retained or released.
    pub(crate) async fn binding(&self, id: BindingId) -> Result<Option<Binding>, ReadError> {
        let rows = self.pool.load(ReadBinding { id: id.get() }).await?;
        rows.into_iter().next().map(binding).transpose()
    }

    /// The binding of a member at a Site that is retained.
    pub(crate) async fn retained(
        &self,
        site: &SiteId,
        member: &MemberId,
    ) -> Result<Option<Binding>, ReadError> {
        let (site, member) = (site.as_str().to_owned(), member.as_str().to_owned());
        let rows = self.pool.load(ReadRetained { site, member }).await?;
        rows.into_iter().next().map(binding).transpose()
    }

    /// Bindings of a Site in the order in which they were retained.
    pub(crate) async fn list(
        &self,
        site: &SiteId,
        listing: &Listing,
    ) -> Result<Vec<Binding>, ReadError> {
        let statement = ListBindings {
            site: site.as_str().to_owned(),
            member: listing.member.as_ref().map(|member| member.as_str().to_owned()),
            released: listing.released,
            after: listing.after.map_or(0, BindingId::get),
            limit: i64::from(listing.limit),
        };
        self.pool.load(statement).await?.into_iter().map(binding).collect()
    }
}

fn binding((names, native, times): BindingRow) -> Result<Binding, ReadError> {
    let ((id, site, member), (unix_user, uid, gid, account), (retained_at, released_at)) =
        (names, native, times);
    let retained = NewBinding {
        site: known(SiteId::parse(&site), "a Site")?,
        member: known(MemberId::parse(&member), "a member")?,
        unix_user: known(UnixUser::parse(&unix_user), "a Unix user")?,
        uid: known(Uid::parse(&uid.to_string()), "a uid")?,
        gid: known(Gid::parse(&gid.to_string()), "a gid")?,
        account: known(Account::parse(&account), "an account")?,
    };
    Ok(Binding { id: BindingId::from_database(id), retained, retained_at, released_at })
}

fn known<T>(parsed: Result<T, Invalid>, what: &'static str) -> Result<T, ReadError> {
    parsed.map_err(|_| ReadError::Corrupt(what))
}
