//! What is asked, and how it is written and read.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::VERSION;

/// What a member wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// See the private output of a Run of a project.
    RunsOutputView,
    /// Have a Run of a project executed.
    RunsExecute,
    /// Read the repositories of a project.
    RepositoriesRead,
    /// Write the repositories of a project.
    RepositoriesWrite,
    /// Manage a Site of a tenant.
    ComputeSitesManage,
}

/// A name that somebody else has given: of a member, a project, a tenant or a Site. 1 to 255 visible
/// ASCII characters, none of them a space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name(String);

/// A text that is no [`Name`]. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name is 1 to 255 visible ASCII characters without a space")]
pub struct NotAName;

/// May this member do this now?
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    permission: Permission,
    member: Name,
    about: About,
    site: Name,
}

/// What a permission is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// A project.
    Project(Name),
    /// A tenant, whose Site the question names.
    Tenant(Name),
}

/// Why bytes are no question. It repeats none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// Not a JSON object with the fields of a question and no other, each of its type and there once.
    #[error("it is no JSON object with the fields of a question and no other")]
    Json,
    /// Another version.
    #[error("its version is not {VERSION}")]
    Version,
    /// No permission that is known.
    #[error("its permission is not known")]
    Permission,
    /// A name that breaks the rule.
    #[error("a name in it is wrong: {NotAName}")]
    Name,
    /// A permission about a project with a tenant, or the other way round, or neither.
    #[error("it is not about what its permission is about")]
    About,
}

impl Permission {
    /// Each permission.
    pub const ALL: [Self; 5] = [
        Self::RunsOutputView,
        Self::RunsExecute,
        Self::RepositoriesRead,
        Self::RepositoriesWrite,
        Self::ComputeSitesManage,
    ];

    /// Its word, which is the routing key as well.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunsOutputView => "runs.output.view",
            Self::RunsExecute => "runs.execute",
            Self::RepositoriesRead => "repositories.read",
            Self::RepositoriesWrite => "repositories.write",
            Self::ComputeSitesManage => "compute:sites:manage",
        }
    }

    /// The permission of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.as_str() == word)
    }

    /// Whether it is about a tenant and its Site; the others are about a project.
    #[must_use]
    pub fn is_of_a_tenant(self) -> bool {
        self == Self::ComputeSitesManage
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Name {
    /// Takes a text that is a name.
    ///
    /// # Errors
    ///
    /// [`NotAName`].
    pub fn parse(text: &str) -> Result<Self, NotAName> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        if visible && (1..=255).contains(&text.len()) {
            return Ok(Self(text.to_owned()));
        }
        Err(NotAName)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Question {
    /// Asks whether a member may do something in a project, at a Site; none where the permission is not about a
    /// project.
    #[must_use]
    pub fn in_project(
        permission: Permission,
        member: Name,
        project: Name,
        site: Name,
    ) -> Option<Self> {
        let about = About::Project(project);
        (!permission.is_of_a_tenant()).then_some(Self { permission, member, about, site })
    }

    /// Asks whether a member may manage a Site of a tenant.
    #[must_use]
    pub fn manages_site(member: Name, tenant: Name, site: Name) -> Self {
        let permission = Permission::ComputeSitesManage;
        Self { permission, member, about: About::Tenant(tenant), site }
    }

    /// What is asked for.
    #[must_use]
    pub fn permission(&self) -> Permission {
        self.permission
    }

    /// Who wants to act.
    #[must_use]
    pub fn member(&self) -> &Name {
        &self.member
    }

    /// What it is about.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Where it is to happen.
    #[must_use]
    pub fn site(&self) -> &Name {
        &self.site
    }

    /// Reads the body of a question.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(body: &[u8]) -> Result<Self, QuestionError> {
        // The library takes a list of the values as well.
        if !body.trim_ascii_start().starts_with(b"{") {
            return Err(QuestionError::Json);
        }
        let wire: Wire = serde_json::from_slice(body).map_err(|_| QuestionError::Json)?;
        if wire.version != VERSION {
            return Err(QuestionError::Version);
        }
        Self::from_fields(wire.fields())
    }

    /// The body of the question.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let Fields { permission, member, project, tenant, site } = self.fields();
        serde_json::to_vec(&Wire { version: VERSION, permission, member, project, tenant, site })
    }

    /// The fields as they stand in a question and again in its answer.
    pub(crate) fn fields(&self) -> Fields {
        let (project, tenant) = match &self.about {
            About::Project(project) => (Some(project.0.clone()), None),
            About::Tenant(tenant) => (None, Some(tenant.0.clone())),
        };
        Fields {
            permission: self.permission.as_str().to_owned(),
            member: self.member.0.clone(),
            project,
            tenant,
            site: self.site.0.clone(),
        }
    }

    fn from_fields(fields: Fields) -> Result<Self, QuestionError> {
        let permission = Permission::of(&fields.permission).ok_or(QuestionError::Permission)?;
        let name = |text: String| Name::parse(&text).map_err(|_| QuestionError::Name);
        let about = match (fields.project, fields.tenant) {
            (Some(project), None) if !permission.is_of_a_tenant() => About::Project(name(project)?),
            (None, Some(tenant)) if permission.is_of_a_tenant() => About::Tenant(name(tenant)?),
            _ => return Err(QuestionError::About),
        };
        Ok(Self { permission, member: name(fields.member)?, about, site: name(fields.site)? })
    }
}

/// What a question says, and its answer repeats, as texts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) permission: String,
    pub(crate) member: String,
    pub(crate) project: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) site: String,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    version: u64,
    permission: String,
    member: String,
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    site: String,
}

impl Wire {
    fn fields(self) -> Fields {
        let Self { version: _, permission, member, project, tenant, site } = self;
        Fields { permission, member, project, tenant, site }
    }
}

/// A text that may be absent. `null` is not absent.
pub(crate) fn there<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(Some)
}

#[cfg(test)]
pub(crate) mod tests;
