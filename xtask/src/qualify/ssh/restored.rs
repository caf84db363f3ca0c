//! A database that was restored to an older state: what is in force there holds, and the agent brings
//! its files to it.

use std::{error::Error, path::Path};

use test_support::{openssh::SshKey, postgres::Cluster};
use tokio::time::Instant;

use super::{cut_off::RECOVERS_WITHIN, files::held, told::timed};
use crate::{
    claim::Claim,
    ssh_site::{KeyAdmin, SshSite, WINDOW, let_in, refused},
};

/// The member whose keys change after the copy was made.
const RITA: &str = "rita";
/// The member who comes after it.
const SAM: &str = "sam";

pub(super) const USERS: [&str; 2] = [RITA, SAM];

/// The copy that is put back.
const COPY: &str = "older";

/// Plays it, and gives the claims.
pub(super) async fn play(
    site: &SshSite,
    cluster: &mut Cluster,
    admin: &KeyAdmin,
    folder: &Path,
) -> Result<Vec<Claim>, Box<dyn Error>> {
    let sshd = &site.sshd;
    let key = |name: &str| SshKey::make(folder, name);
    let (older, newer) = (key("older")?, key("newer")?);
    admin.add_account(site.name(), RITA, RITA).await?;
    let id = admin.add_key(RITA, &older, None).await?;
    let there = let_in(sshd, RITA, &older, Instant::now(), WINDOW).await?;
    there.ok_or("the key that is in the copy never came into force")?;

    cluster.back_up(COPY).await?;
    admin.remove_key(&id).await?;
    admin.add_account(site.name(), SAM, SAM).await?;
    for user in USERS {
        admin.add_key(user, &newer, None).await?;
    }
    let now = Instant::now();
    for user in USERS {
        let there = let_in(sshd, user, &newer, now, WINDOW).await?;
        there.ok_or("a key that was added after the copy never came into force")?;
    }
    let gone = refused(sshd, RITA, &older, now, WINDOW).await?;
    gone.ok_or("a key that was removed after the copy was never refused")?;

    cluster.put_back(COPY).await?;
    let back = Instant::now();
    cluster.restart().await?;
    let mut claims = Vec::new();
    let took = let_in(sshd, RITA, &older, back, RECOVERS_WITHIN).await?;
    let claim = "an older database: what is in force there lets in again";
    claims.push(timed(claim, took, "after it was put back", RECOVERS_WITHIN));
    let mut all = Vec::new();
    for user in USERS {
        all.extend(refused(sshd, user, &newer, back, RECOVERS_WITHIN).await?);
    }
    let latest = all.iter().max().copied().filter(|_| all.len() == USERS.len());
    let claim = "an older database: what it does not know is refused";
    claims.push(timed(claim, latest, "after it was put back", RECOVERS_WITHIN));
    let left = held(&sshd.keys_folder())?.contains_key(SAM);
    let figure = if left { "it is there" } else { "it is gone" };
    let claim = "an older database: a user whom it does not know loses the file";
    claims.push(Claim::new(claim, figure, !left));
    let told = site.agent.lines().iter().any(|line| line.text.contains("\"ssh_feed_diverged\""));
    let figure = if told { "ssh_feed_diverged" } else { "no alarm" };
    claims.push(Claim::new("an older database: the agent raises an alarm", figure, told));
    Ok(claims)
}
