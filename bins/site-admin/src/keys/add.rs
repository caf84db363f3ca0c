//! `site-admin keys add`.

use clap::Args;
use ring::rand::SecureRandom;
use ssh_access::{KeyEnd, MemberId, NewKey, PublicKey, Registry};

use super::shown::Added;
use crate::{
    Failure,
    commands::parser,
    input,
    output::{Format, say},
};

#[derive(Args)]
pub(crate) struct Add {
    /// The member.
    #[arg(long, value_parser = parser(MemberId::parse))]
    member: MemberId,
    /// When the key expires, such as 2030-01-01T00:00:00Z; never without it.
    #[arg(long, value_name = "TIME", value_parser = parser(KeyEnd::parse))]
    expires_at: Option<KeyEnd>,
    /// The file with the public key, `-` for standard input. Its comment is dropped.
    #[arg(value_name = "FILE")]
    public_key: String,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: Add,
    format: Format,
    random: &(dyn SecureRandom + Sync),
) -> Result<(), Failure> {
    let Add { member, expires_at, public_key: file } = arguments;
    // One byte more than a line and its break may have: a longer one is told to be too long.
    let text = input::read(&file, PublicKey::MAX_BYTES + 3)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    let key = PublicKey::parse(line);
    let key = key.map_err(|refusal| Failure::data(format!("{file}: {refusal}")))?;
    if let Some(warning) = key.warning() {
        say(format_args!("{file}: {warning}"));
    }
    let done = registry.add_key(&NewKey { member, key, end: expires_at }, random).await?;
    format.print(&Added::of(&done))
}
