//! What a process checks of its credential before it serves.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Bool, Text},
};
use diesel_async::RunQueryDsl;

use crate::{ConnectError, DatabaseUrl};

/// The restricted role that a pool must have, and nothing beyond it.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Its name, or the name of the one role that the credential is a member of.
    pub name: &'static str,
    /// The schema of its context, the only one that it may use.
    pub schema: &'static str,
    /// Whether it may delete rows there: only one that keeps to retention does.
    pub deletes: bool,
}

/// Why a credential is refused.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The check could not be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The catalogue could not be read.
    #[error("the catalogue can't be read")]
    Catalogue(#[source] diesel::result::Error),
    /// The credential has rights that it must not have; each is named.
    #[error("the role {role} must not serve: {}", reasons.join("; "))]
    TooMuch {
        /// The role of the credential.
        role: String,
        /// Every reason.
        reasons: Vec<String>,
    },
}

/// Why a role has not the rights that a release grants.
#[derive(Debug, thiserror::Error)]
pub enum RightsError {
    /// The comparison could not be made.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The catalogue could not be read.
    #[error("the catalogue can't be read")]
    Catalogue(#[source] diesel::result::Error),
    /// Each right that is missing, and each that is too much, by its name and object.
    #[error(
        "the rights of {role} are not those of this release; missing: {}; too much: {}",
        listed(missing),
        listed(extra)
    )]
    Differ {
        /// The role.
        role: &'static str,
        /// What the release grants and the role has not.
        missing: Vec<String>,
        /// What the role has beyond that.
        extra: Vec<String>,
    },
}

#[derive(QueryableByName)]
struct Right {
    #[diesel(sql_type = Text)]
    right: String,
}

#[derive(QueryableByName)]
struct Reason {
    #[diesel(sql_type = Text)]
    reason: String,
}

impl Role {
    /// Checks the credential of `url`, and every role that it is a member of: no superuser, no
    /// right to make roles or databases or to pass row security, owner of nothing, member of no
    /// role beyond this one, no right in another schema, and none in its own to truncate or attach
    /// anything, nor to delete where it is not for that. Its commits wait for the disk.
    ///
    /// # Errors
    ///
    /// Every reason at once, or why the check could not be made.
    pub async fn check(&self, url: &DatabaseUrl) -> Result<(), RoleError> {
        let mut connection = url.connect().await?;
        let reasons = sql_query(include_str!("role.sql"))
            .bind::<Text, _>(self.name)
            .bind::<Text, _>(self.schema)
            .bind::<Bool, _>(self.deletes)
            .load::<Reason>(&mut connection)
            .await;
        let reasons = match reasons {
            Ok(reasons) => reasons,
            Err(error) => {
                return Err(match ConnectError::broken(&mut connection, &error).await {
                    Some(broken) => broken.into(),
                    None => RoleError::Catalogue(error),
                });
            }
        };
        if reasons.is_empty() {
            return Ok(());
        }
        Err(RoleError::TooMuch {
            role: url.role().to_owned(),
            reasons: reasons.into_iter().map(|row| row.reason).collect(),
        })
    }

    /// Compares what the role was granted on the database and in its schema with `rights`, which
    /// are privileges, separated by commas, and the object without its schema. For an administrator:
    /// a process only minds rights that it must never have, so that a schema may be ahead of it.
    ///
    /// # Errors
    ///
    /// Every difference at once, or why the comparison could not be made.
    pub async fn compare(
        &self,
        url: &DatabaseUrl,
        rights: &[(&str, &str)],
    ) -> Result<(), RightsError> {
        let mut connection = url.connect().await?;
        let found = sql_query(include_str!("granted.sql"))
            .bind::<Text, _>(self.name)
            .bind::<Text, _>(self.schema)
            .load::<Right>(&mut connection)
            .await;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                return Err(match ConnectError::broken(&mut connection, &error).await {
                    Some(broken) => broken.into(),
                    None => RightsError::Catalogue(error),
                });
            }
        };
        let found: BTreeSet<String> = found.into_iter().map(|row| row.right).collect();
        let wanted: BTreeSet<String> = rights
            .iter()
            .flat_map(|(names, object)| {
                names.split(',').map(move |name| format!("{name} on {object}"))
            })
            .collect();
        if found == wanted {
            return Ok(());
        }
        Err(RightsError::Differ {
            role: self.name,
            missing: wanted.difference(&found).cloned().collect(),
            extra: found.difference(&wanted).cloned().collect(),
        })
    }
}

fn listed(rights: &[String]) -> String {
    if rights.is_empty() { "nothing".to_owned() } else { rights.join(", ") }
}
