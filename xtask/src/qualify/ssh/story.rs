//! What is so while nothing is broken: a key from its addition to a login, and each way in which it ends.

use std::{error::Error, fs, path::Path, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use test_support::{
    openssh::{Login, SshKey},
    postgres::Cluster,
};
use tokio::time::{Instant, sleep};

use super::{
    acknowledged::{acknowledged, connect},
    files::UNMANAGED,
    told::{ends, login, shown, timed, whole_seconds, write_own_file},
};
use crate::{
    claim::Claim,
    ssh_site::{KeyAdmin, PROPAGATOR_LEASE, SshSite, WINDOW, let_in, refused},
};

/// The member with two keys, one of which another member has too.
pub(super) const ANN: &str = "ann";
const BOB: &str = "bob";
/// The member whose account is taken away.
const CARL: &str = "carl";
/// The member whose key ends by itself.
const DORA: &str = "dora";
/// Who administers the login node, and has a file of its own.
const BOSS: &str = "boss";

/// The users of the login node.
pub(super) const USERS: [&str; 6] = [ANN, BOB, CARL, DORA, BOSS, UNMANAGED];
pub(super) const ADMINISTRATORS: [&str; 1] = [BOSS];

/// How long the key lives that ends by itself, from before it is added.
const LIFE: TimeDelta = TimeDelta::seconds(20);
/// How much later than its lease a dead `ssh-access` may be noticed: a look a second, and a machine
/// that does something else.
const NOTICED_WITHIN: Duration = Duration::from_secs(7);
/// Until something is told that everybody works on.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// The parts of the story, and what was found.
pub(super) struct Story<'a> {
    pub(super) site: &'a mut SshSite,
    pub(super) cluster: &'a Cluster,
    pub(super) admin: &'a KeyAdmin,
    pub(super) keys: &'a Path,
    pub(super) clock: fn() -> DateTime<Utc>,
    pub(super) claims: Vec<Claim>,
    /// A key that is in force and is not touched any more, and since when.
    pub(super) untouched: Option<(SshKey, Instant)>,
}

impl Story<'_> {
    /// Plays it.
    pub(super) async fn play(&mut self) -> Result<(), Box<dyn Error>> {
        for user in [ANN, BOB, CARL, DORA, UNMANAGED] {
            self.admin.add_account(self.site.name(), user, user).await?;
        }
        self.snippet().await?;
        self.own_files().await?;
        self.removed().await?;
        self.account().await?;
        self.expired().await?;
        self.unmanaged().await?;
        self.taken_over().await
    }

    fn key(&self, name: &str) -> std::io::Result<SshKey> {
        SshKey::make(self.keys, name)
    }

    /// The login node began with `sshd -t`; what it takes from the snippet is what members need.
    async fn snippet(&mut self) -> Result<(), Box<dyn Error>> {
        let settings = self.site.sshd.settings_for(ANN).await?;
        let file = settings.iter().find(|line| line.starts_with("authorizedkeysfile "));
        let figure = file.cloned().unwrap_or_default();
        let ok = figure == "authorizedkeysfile /etc/ssh/site-agent/%u";
        self.claims.push(Claim::new("sshd takes the snippet as it is shipped", figure, ok));
        Ok(())
    }

    /// A file in the home lets an administrator in, and no member.
    async fn own_files(&mut self) -> Result<(), Box<dyn Error>> {
        let key = self.key("own")?;
        for user in [ANN, BOSS] {
            write_own_file(&self.site.sshd, user, &key)?;
        }
        let (member, boss) =
            (self.site.sshd.log_in(ANN, &key).await?, self.site.sshd.log_in(BOSS, &key).await?);
        let claim = "a key that a member wrote into its home is refused";
        self.claims.push(login(claim, member, Login::Refused));
        let claim = "an administrator's own file lets in, by Match";
        self.claims.push(login(claim, boss, Login::LetIn));
        Ok(())
    }

    async fn removed(&mut self) -> Result<(), Box<dyn Error>> {
        let (key, shared) = (self.key("one")?, self.key("shared")?);
        let claim = "a key that nobody added is refused";
        self.claims.push(login(claim, self.site.sshd.log_in(ANN, &key).await?, Login::Refused));

        let began = Instant::now();
        self.admin.add_key(ANN, &key, None).await?;
        let took = let_in(&self.site.sshd, ANN, &key, began, WINDOW).await?;
        let claim = "an added key lets its member in";
        self.claims.push(timed(claim, took, "from `site-admin keys add` to the login", WINDOW));

        let id = self.admin.add_key(ANN, &shared, None).await?;
        self.admin.add_key(BOB, &shared, None).await?;
        let now = Instant::now();
        let both = [
            let_in(&self.site.sshd, ANN, &shared, now, WINDOW).await?,
            let_in(&self.site.sshd, BOB, &shared, now, WINDOW).await?,
        ];
        let ok = both.iter().all(Option::is_some);
        let figure = format!("{} of 2 let in", both.iter().flatten().count());
        self.claims.push(Claim::new("a key of two members lets each in as itself", figure, ok));

        let began = Instant::now();
        self.admin.remove_key(&id).await?;
        let took = refused(&self.site.sshd, ANN, &shared, began, WINDOW).await?;
        let claim = "a removed key is refused within the window";
        self.claims.push(timed(claim, took, "from removal to refusal", WINDOW));
        let claim = "the same key of another member lets that one in as before";
        self.claims.push(login(claim, self.site.sshd.log_in(BOB, &shared).await?, Login::LetIn));
        let claim = "the other key of who lost one lets in as before";
        self.claims.push(login(claim, self.site.sshd.log_in(ANN, &key).await?, Login::LetIn));
        self.untouched = Some((key, Instant::now()));
        Ok(())
    }

    async fn account(&mut self) -> Result<(), Box<dyn Error>> {
        let key = self.key("account")?;
        self.admin.add_key(CARL, &key, None).await?;
        let added = let_in(&self.site.sshd, CARL, &key, Instant::now(), WINDOW).await?;
        let began = Instant::now();
        self.admin.remove_account(self.site.name(), CARL).await?;
        let took = refused(&self.site.sshd, CARL, &key, began, WINDOW).await?;
        let claim = "an account that was taken away lets nobody in";
        let took = took.filter(|_| added.is_some());
        self.claims.push(timed(claim, took, "from removal to refusal", WINDOW));
        Ok(())
    }

    /// Nobody does anything when the time comes.
    async fn expired(&mut self) -> Result<(), Box<dyn Error>> {
        let key = self.key("ends")?;
        let end = whole_seconds((self.clock)() + LIFE);
        self.admin.add_key(DORA, &key, Some(end)).await?;
        self.claims.push(ends(&self.site.sshd, DORA, &key, end, self.clock).await?);
        Ok(())
    }

    /// A file of somebody else is in the place of a member's.
    async fn unmanaged(&mut self) -> Result<(), Box<dyn Error>> {
        let (theirs, members) = (self.key("theirs")?, self.key("members")?);
        let file = self.site.sshd.keys_folder().join(UNMANAGED);
        let before = format!("# kept by hand\n{}\n", theirs.public());
        fs::write(&file, &before)?;
        self.admin.add_key(UNMANAGED, &members, None).await?;
        let client = connect(self.cluster).await?;
        let deadline = Instant::now() + TOLD_WITHIN;
        let told = loop {
            let stored = acknowledged(&client, self.site.name(), "-infinity").await?;
            let told = stored.failures.contains("unmanaged_file");
            if told || Instant::now() > deadline {
                break told;
            }
            sleep(PAUSE).await;
        };
        let same = fs::read_to_string(&file)? == before;
        let claim = "a file that is not the agent's stays, and is told";
        let figure = format!(
            "{}, {}",
            if same { "not a byte is changed" } else { "it was changed" },
            if told { "told as unmanaged_file" } else { "not told" }
        );
        self.claims.push(Claim::new(claim, figure, same && told));
        let claim = "a file that is not the agent's lets its own key in, and not the member's";
        let sshd = &self.site.sshd;
        let (theirs, members) =
            (sshd.log_in(UNMANAGED, &theirs).await?, sshd.log_in(UNMANAGED, &members).await?);
        let ok = (theirs, members) == (Login::LetIn, Login::Refused);
        let figure = format!("{}, {}", shown(theirs), shown(members));
        self.claims.push(Claim::new(claim, figure, ok));
        Ok(())
    }

    /// One of two `ssh-access` is killed, and the other one goes on.
    async fn taken_over(&mut self) -> Result<(), Box<dyn Error>> {
        let key = self.key("late")?;
        let leader = self.site.leader().ok_or("no ssh-access leads")?;
        let killed = Instant::now();
        self.site.propagators[leader].kill();
        self.admin.add_key(BOB, &key, None).await?;
        let within = PROPAGATOR_LEASE + NOTICED_WITHIN;
        let took = let_in(&self.site.sshd, BOB, &key, killed, within).await?;
        let claim = "of two ssh-access one is killed, and the other one takes over";
        self.claims.push(timed(claim, took, "from the kill to a login with a new key", within));
        self.site.restart_propagator(leader)
    }
}
