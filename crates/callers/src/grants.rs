//! The grants of native bearers, and who a bearer is by them.

mod file;
mod object;

use std::{collections::HashMap, fmt};

use chrono::{DateTime, Utc};
use subtle::ConstantTimeEq;

use crate::{
    bearer::{BearerId, NativeBearer},
    principal::Principal,
};

pub(crate) use object::Entries;

/// A valid grants file. README.md has its form and rules.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    grants: Vec<Grant>,
    by_id: HashMap<BearerId, usize>,
}

/// One grant: that the bearer with this digest is this principal until it expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    id: BearerId,
    principal: Principal,
    digest: [u8; 32],
    issued_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
}

/// What a grant is worth at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantState {
    /// Its bearer is let in.
    Active,
    /// It was revoked, for ever; whether it has expired as well does not matter.
    Revoked,
    /// Its life is over.
    Expired,
}

/// Why a bearer is nobody's. For the log: the caller gets the same 401 for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// No grant has its id.
    #[error("no grant has this bearer's id")]
    Unknown,
    /// The grant of its id has another digest.
    #[error("the bearer's secret is not that of its grant")]
    WrongSecret,
    /// Its grant was revoked.
    #[error("the grant was revoked")]
    Revoked,
    /// Its grant has expired.
    #[error("the grant has expired")]
    Expired,
}

/// Every mistake of a grants file, one line each, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantsErrors(Vec<String>);

impl Grants {
    /// Reads a grants file as it is valid at `now`.
    ///
    /// # Errors
    ///
    /// Every mistake in it. No digest and no malformed value is repeated.
    pub fn parse(text: &str, now: DateTime<Utc>) -> Result<Self, GrantsErrors> {
        file::parse(text, now)
    }

    /// The text of a grants file with these grants.
    #[must_use]
    pub fn to_json(&self) -> String {
        file::to_json(&self.grants)
    }

    /// The grant of a bearer, if it is active at `now`.
    ///
    /// The digests are compared in constant time, and a bearer with an unknown id costs the same
    /// comparison.
    ///
    /// # Errors
    ///
    /// [`Refused`], which says why. A caller must not learn it.
    pub fn authenticate(
        &self,
        bearer: &NativeBearer,
        now: DateTime<Utc>,
    ) -> Result<&Grant, Refused> {
        let grant = self.find(bearer)?;
        match grant.state(now) {
            GrantState::Active => Ok(grant),
            GrantState::Revoked => Err(Refused::Revoked),
            GrantState::Expired => Err(Refused::Expired),
        }
    }

    /// The grant of a bearer, whether it is active or not: for an administrator who holds one and
    /// asks whose it is. It lets nobody in.
    ///
    /// # Errors
    ///
    /// [`Refused::Unknown`] and [`Refused::WrongSecret`].
    pub fn find(&self, bearer: &NativeBearer) -> Result<&Grant, Refused> {
        let digest = bearer.digest();
        let grant = self.by_id.get(bearer.id()).map(|index| &self.grants[*index]);
        let stored = grant.map_or(&[0; 32], |grant| &grant.digest);
        let same = bool::from(stored.ct_eq(&digest));
        let grant = grant.ok_or(Refused::Unknown)?;
        if same { Ok(grant) } else { Err(Refused::WrongSecret) }
    }

    /// The grants in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.grants.iter()
    }

    /// Whether there is none, so that nobody is let in.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.grants.is_empty()
    }

    /// The active grant of a principal. Environments of one Site share a principal.
    pub(crate) fn active(&self, principal: &Principal, now: DateTime<Utc>) -> Option<&Grant> {
        let name = principal.to_string();
        self.iter().find(|grant| grant.is_active(now) && grant.principal.to_string() == name)
    }

    /// Adds a grant whose id is new and whose principal has no active one.
    pub(crate) fn add(&mut self, grant: Grant) {
        self.by_id.insert(grant.id.clone(), self.grants.len());
        self.grants.push(grant);
    }

    pub(crate) fn has(&self, id: &BearerId) -> bool {
        self.by_id.contains_key(id)
    }

    /// The grant with this id, to be changed.
    pub(crate) fn by_id_mut(&mut self, id: &BearerId) -> Option<&mut Grant> {
        self.by_id.get(id).map(|index| &mut self.grants[*index])
    }
}

impl Grant {
    /// The grant of a new bearer. `expires_at` must be later than `issued_at`.
    pub(crate) fn of(
        bearer: &NativeBearer,
        principal: Principal,
        issued_at: DateTime<Utc>,
        expires_at: DateTime<Utc>,
    ) -> Self {
        let (id, digest) = (bearer.id().clone(), bearer.digest());
        Self { id, principal, digest, issued_at, expires_at, revoked_at: None }
    }

    /// The id of its bearer.
    #[must_use]
    pub fn id(&self) -> &BearerId {
        &self.id
    }

    /// Whom the bearer stands for.
    #[must_use]
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// When it was issued. It does not wait for that time: clocks differ.
    #[must_use]
    pub fn issued_at(&self) -> DateTime<Utc> {
        self.issued_at
    }

    /// From when on it is refused.
    #[must_use]
    pub fn expires_at(&self) -> DateTime<Utc> {
        self.expires_at
    }

    /// When it was revoked, where it was. From the next reading of the file on it is refused,
    /// whatever time this is.
    #[must_use]
    pub fn revoked_at(&self) -> Option<DateTime<Utc>> {
        self.revoked_at
    }

    /// What it is worth at `now`.
    #[must_use]
    pub fn state(&self, now: DateTime<Utc>) -> GrantState {
        if self.revoked_at.is_some() {
            GrantState::Revoked
        } else if now >= self.expires_at {
            GrantState::Expired
        } else {
            GrantState::Active
        }
    }

    /// Whether its bearer is let in at `now`.
    #[must_use]
    pub fn is_active(&self, now: DateTime<Utc>) -> bool {
        self.state(now) == GrantState::Active
    }

    /// Revokes it, for ever.
    pub(crate) fn revoke(&mut self, at: DateTime<Utc>) {
        self.revoked_at = Some(at);
    }
}

impl GrantState {
    /// Its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }
}

impl GrantsErrors {
    /// The mistakes.
    #[must_use]
    pub fn mistakes(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for GrantsErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for GrantsErrors {}
