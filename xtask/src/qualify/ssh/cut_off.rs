//! A Site whose agent is cut off: nothing reaches the login node any more, and sshd itself has to let a
//! removed key die.

use std::{error::Error, fs, path::Path, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use test_support::openssh::{Login, SshKey};
use tokio::time::Instant;

use super::told::{ends, login, timed, whole_seconds, write_own_file};
use crate::{
    claim::Claim,
    ssh_site::{KeyAdmin, SshSite, WINDOW, let_in, refused},
};

const ZOE: &str = "zoe";
const YAN: &str = "yan";
const BOSS: &str = "boss";

pub(super) const USERS: [&str; 3] = [ZOE, YAN, BOSS];
pub(super) const ADMINISTRATORS: [&str; 1] = [BOSS];

/// How long the key lives that ends by itself, from before it is added: while it is cut off, and every
/// other one is in force.
const LIFE: TimeDelta = TimeDelta::seconds(20);
/// How long it may take until everything is as it should be once the line is back: a request that hangs
/// is given up, and the agent waits for a moment before the next.
pub(super) const RECOVERS_WITHIN: Duration = Duration::from_secs(60);

/// Plays it at a Site of its own, and gives the claims.
pub(super) async fn play(
    site: &SshSite,
    admin: &KeyAdmin,
    folder: &Path,
    clock: fn() -> DateTime<Utc>,
) -> Result<Vec<Claim>, Box<dyn Error>> {
    let mut claims = Vec::new();
    let sshd = &site.sshd;
    let key = |name: &str| SshKey::make(folder, name);
    let (kept, removed, ending, own) =
        (key("kept")?, key("removed")?, key("ending")?, key("boss")?);
    write_own_file(sshd, BOSS, &own)?;
    for user in [ZOE, YAN] {
        admin.add_account(site.name(), user, user).await?;
        admin.add_key(user, &kept, None).await?;
    }
    let id = admin.add_key(ZOE, &removed, None).await?;
    for (user, key) in [(ZOE, &kept), (YAN, &kept), (ZOE, &removed)] {
        in_force(site, user, key).await?;
    }
    let end = whole_seconds(clock() + LIFE);
    admin.add_key(ZOE, &ending, Some(end)).await?;
    in_force(site, ZOE, &ending).await?;

    site.network.black_hole(true);
    let since = Instant::now();
    admin.remove_key(&id).await?;
    let mut own_end = ends(sshd, ZOE, &ending, end, clock).await?;
    own_end.claim = "cut off: a key that ends lets in until its end, and not after".to_owned();
    claims.push(own_end);
    let claim = "cut off: a key that is in force lets in at first";
    claims.push(login(claim, sshd.log_in(ZOE, &kept).await?, Login::LetIn));

    let took = refused(sshd, ZOE, &removed, since, WINDOW).await?;
    let in_file = fs::read_to_string(sshd.keys_folder().join(ZOE))?.contains(removed.public());
    let claim = "cut off: a removed key is refused within the window, by sshd itself";
    let mut by_sshd = timed(claim, took, "from removal to refusal", WINDOW);
    by_sshd.figure += if in_file { ", its line still in the file" } else { ", its line gone" };
    by_sshd.ok &= in_file;
    claims.push(by_sshd);
    let mut all = Vec::new();
    for user in [ZOE, YAN] {
        all.extend(refused(sshd, user, &kept, since, WINDOW).await?);
    }
    let latest = all.iter().max().copied().filter(|_| all.len() == 2);
    let claim = "cut off: every other key is refused within the window too";
    claims.push(timed(claim, latest, "after the cut at the latest", WINDOW));
    let claim = "cut off: an administrator's own file lets in as before";
    claims.push(login(claim, sshd.log_in(BOSS, &own).await?, Login::LetIn));

    let back = Instant::now();
    site.network.black_hole(false);
    let mut all = Vec::new();
    for user in [ZOE, YAN] {
        all.extend(let_in(sshd, user, &kept, back, RECOVERS_WITHIN).await?);
    }
    let latest = all.iter().max().copied().filter(|_| all.len() == 2);
    let claim = "the line is back: what is in force lets in again";
    claims.push(timed(claim, latest, "after it came back", RECOVERS_WITHIN));
    for (claim, key) in [
        ("the line is back: what was removed meanwhile stays refused", &removed),
        ("the line is back: what ended meanwhile stays refused", &ending),
    ] {
        claims.push(login(claim, sshd.log_in(ZOE, key).await?, Login::Refused));
    }
    claims.push(Claim::new(
        "cut off: no program ends by itself",
        format!("{} ended", site.ended().len()),
        site.ended().is_empty(),
    ));
    Ok(claims)
}

/// Until a key lets in, which is what the story begins with.
async fn in_force(site: &SshSite, user: &str, key: &SshKey) -> Result<(), Box<dyn Error>> {
    let came_in = let_in(&site.sshd, user, key, Instant::now(), WINDOW).await?;
    came_in
        .map(drop)
        .ok_or_else(|| "a key of the Site that is to be cut off is not in force".into())
}
