//! `site-admin bindings release`.

use std::fmt;

use clap::Args;
use resource_provisioning::{BindingId, Registry};
use serde::Serialize;

use super::shown::Shown;
use crate::{
    Failure,
    commands::{parser, time},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Release {
    /// The binding's id.
    #[arg(value_parser = parser(BindingId::parse))]
    binding_id: BindingId,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Release,
    format: Format,
) -> Result<(), Failure> {
    let done = registry.release(arguments.binding_id).await?;
    format.print(&Released { binding: Shown::of(&done.binding), changed: done.new })
}

/// A binding that is released.
#[derive(Serialize)]
struct Released {
    #[serde(flatten)]
    binding: Shown,
    changed: bool,
}

impl fmt::Display for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let already = if self.changed { "" } else { " already" };
        let at = self.binding.released_at.map(time).unwrap_or_default();
        write!(f, "{}: released{already}, at {at}", self.binding.binding_id)
    }
}
