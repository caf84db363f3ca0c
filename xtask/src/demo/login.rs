//! `cargo xtask demo --all`, the last part: a member's key from its addition to a login at a real sshd,
//! and the login's end.

use std::{error::Error, time::Duration};

use test_support::{
    bin,
    openssh::{self, Login, SshKey},
    postgres::{Cluster, Installation, Options, migrated_database},
};
use tokio::time::Instant;

use crate::{
    ssh_site::{DATABASE, KeyAdmin, SshSite, SshSiteSetup, WINDOW, let_in, refused},
    stop::Stop,
};

const SITE: &str = "gpu-lab";
const MEMBER: &str = "ada";

/// Plays it around a cluster of its own, which ends with it.
pub(super) async fn play(stop: &Stop, installation: &Installation) -> Result<(), Box<dyn Error>> {
    println!("\n== A login and its end: ssh-access, site-agent ssh-keys, and sshd with deploy/ssh");
    // Not interrupted: a package is installed whole.
    openssh::Search::of_this_process().find_or_install(|what| println!("{what}"))?;
    let folder = tempfile::Builder::new().prefix("site-control-demo-login-").tempdir()?;
    let mut cluster = stop.unless(Cluster::start(installation, Options::default())).await??;
    stop.unless(migrated_database(&mut cluster, DATABASE, &bin("site-admin"))).await??;
    let setup =
        SshSiteSetup { name: SITE, users: &[MEMBER], administrators: &[], propagators: 1, seed: 0 };
    let site = stop.unless(SshSite::set_up(folder.path(), &cluster, &setup)).await??;
    let key = SshKey::make(folder.path(), "id_ed25519")?;
    let told = match stop.unless(tell(&site, &KeyAdmin::of(&cluster), &key)).await {
        Ok(told) => told,
        Err(stopped) => Err(stopped.into()),
    };
    if told.is_err() {
        println!("\n{}", site.tails());
    }
    drop(site);
    cluster.stop().await?;
    told
}

async fn tell(site: &SshSite, admin: &KeyAdmin, key: &SshKey) -> Result<(), Box<dyn Error>> {
    println!("== `site-admin accounts add`: the member is the user {MEMBER} of {}", site.name());
    admin.add_account(site.name(), MEMBER, MEMBER).await?;
    let login = site.sshd.log_in(MEMBER, key).await?;
    say(
        "`ssh` with a key that nobody added",
        if login == Login::LetIn { "let in" } else { "refused" },
    );
    if login == Login::LetIn {
        return Err("a key that nobody added lets in".into());
    }
    let began = Instant::now();
    let id = admin.add_key(MEMBER, key, None).await?;
    let took = let_in(&site.sshd, MEMBER, key, began, WINDOW).await?;
    came_to("`site-admin keys add`, then `ssh`", "let in", took)?;
    let began = Instant::now();
    admin.remove_key(&id).await?;
    let took = refused(&site.sshd, MEMBER, key, began, WINDOW).await?;
    came_to("`site-admin keys remove`, then `ssh`", "refused", took)
}

fn came_to(what: &str, told: &str, took: Option<Duration>) -> Result<(), Box<dyn Error>> {
    let took = took.ok_or_else(|| format!("{what}: not {told} within the window"))?;
    say(what, &format!("{told}, {:.1} s later", took.as_secs_f64()));
    Ok(())
}

fn say(what: &str, told: &str) {
    println!("   {what:<62} {told}");
}
