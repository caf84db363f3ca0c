//! Members whose keys and accounts change all the time, and what should be in force of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    io,
    path::Path,
    time::Duration,
};

use test_support::{
    Random,
    openssh::{Login, SshKey, Sshd},
};
use tokio::time::{Instant, sleep};

use super::files::{Held, held};
use crate::ssh_site::{AdminError, KeyAdmin};

/// The members, who are users of the same names.
pub(super) const MEMBERS: [&str; 4] = ["ida", "jan", "kim", "lea"];
/// Every member has some of these, and who has which changes.
const KEYS: usize = 4;
/// Between two looks at the files.
const PAUSE: Duration = Duration::from_millis(20);

/// Who has what.
pub(super) struct Roster {
    keys: Vec<SshKey>,
    /// The ids of keys that are added and not removed, by the places of member and key.
    added: BTreeMap<(usize, usize), String>,
    /// Members with an account.
    accounts: BTreeSet<usize>,
    /// Since when what was in force is not any more, and nobody has been seen to be refused.
    ended: BTreeMap<(usize, usize), Instant>,
    /// How many changes there were.
    pub(super) changes: u64,
}

/// What logins with every key as every user came to.
#[derive(Debug, Default)]
pub(super) struct Roll {
    pub(super) let_in: u64,
    pub(super) refused: u64,
    /// The longest time from a removal until its refusal was seen.
    pub(super) longest: Duration,
    /// Logins that came out otherwise than they should.
    pub(super) wrong: Vec<String>,
}

impl Roster {
    /// Makes the keys, and an account for each member.
    pub(super) async fn set_up(
        admin: &KeyAdmin,
        site: &str,
        folder: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let keys: io::Result<_> =
            (0..KEYS).map(|number| SshKey::make(folder, &format!("roster-{number}"))).collect();
        let mut accounts = BTreeSet::new();
        for (place, member) in MEMBERS.iter().enumerate() {
            admin.add_account(site, member, member).await?;
            accounts.insert(place);
        }
        let (added, ended) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { keys: keys?, added, accounts, ended, changes: 0 })
    }

    /// One change, acknowledged: mostly of a key, sometimes of an account.
    pub(super) async fn change(
        &mut self,
        admin: &KeyAdmin,
        site: &str,
        random: &mut Random,
    ) -> Result<(), AdminError> {
        let place = |random: &mut Random, of: usize| {
            usize::try_from(random.within(0..of as u64)).unwrap_or_default()
        };
        let began = Instant::now();
        let (member, key) = (place(random, MEMBERS.len()), place(random, KEYS));
        let name = MEMBERS[member];
        let before = self.in_force();
        // Most have an account, so that most changes of keys matter.
        if self.accounts.contains(&member) && random.within(0..12) == 0 {
            self.accounts.remove(&member);
            admin.remove_account(site, name).await?;
        } else if !self.accounts.contains(&member) && random.within(0..2) == 0 {
            admin.add_account(site, name, name).await?;
            self.accounts.insert(member);
        } else if let Some(id) = self.added.remove(&(member, key)) {
            admin.remove_key(&id).await?;
        } else {
            let id = admin.add_key(name, &self.keys[key], None).await?;
            self.added.insert((member, key), id);
        }
        let after = self.in_force();
        for gone in before.difference(&after) {
            self.ended.insert(*gone, began);
        }
        for come in &after {
            self.ended.remove(come);
        }
        self.changes += 1;
        Ok(())
    }

    /// Members and keys that let in.
    fn in_force(&self) -> BTreeSet<(usize, usize)> {
        let mine = self.added.keys().filter(|(member, _)| self.accounts.contains(member));
        mine.copied().collect()
    }

    /// What the files of the members should hold.
    fn expected(&self) -> Held {
        let mut expected = Held::new();
        for place @ (member, _) in self.in_force() {
            let ids = expected.entry(MEMBERS[member].to_owned()).or_default();
            ids.extend(self.added.get(&place).cloned());
        }
        expected
    }

    /// Until the files of the members hold what they should: how long that took; none where `within`
    /// is over.
    pub(super) async fn settles(
        &self,
        folder: &Path,
        within: Duration,
    ) -> Result<Option<Duration>, io::Error> {
        let (began, expected) = (Instant::now(), self.expected());
        loop {
            let mut files = held(folder)?;
            files.retain(|user, _| MEMBERS.contains(&user.as_str()));
            if files == expected {
                return Ok(Some(began.elapsed()));
            }
            if began.elapsed() > within {
                return Ok(None);
            }
            sleep(PAUSE).await;
        }
    }

    /// Logs in with every key as every user, two at once.
    pub(super) async fn call(&mut self, sshd: &Sshd) -> Result<Roll, Box<dyn Error>> {
        let places = |from: usize| {
            let members =
                (0..MEMBERS.len()).flat_map(|member| (0..KEYS).map(move |key| (member, key)));
            members.filter(move |(_, key)| key % 2 == from).collect::<Vec<_>>()
        };
        let (one, other) = (places(0), places(1));
        let (one, other) = tokio::join!(self.call_some(sshd, &one), self.call_some(sshd, &other));
        let (mut roll, other) = (one?, other?);
        roll.let_in += other.let_in;
        roll.refused += other.refused;
        roll.longest = roll.longest.max(other.longest);
        roll.wrong.extend(other.wrong);
        self.ended.clear();
        Ok(roll)
    }

    async fn call_some(
        &self,
        sshd: &Sshd,
        places: &[(usize, usize)],
    ) -> Result<Roll, Box<dyn Error>> {
        let (mut roll, in_force) = (Roll::default(), self.in_force());
        for place @ (member, key) in places {
            let name = MEMBERS[*member];
            let wanted = in_force.contains(place);
            let login = sshd.log_in(name, &self.keys[*key]).await?;
            match login {
                Login::LetIn => roll.let_in += 1,
                Login::Refused => {
                    roll.refused += 1;
                    let since = self.ended.get(place).map(Instant::elapsed);
                    roll.longest = roll.longest.max(since.unwrap_or_default());
                }
            }
            if (login == Login::LetIn) != wanted {
                roll.wrong.push(format!("{name} with the key {key}: {login:?}"));
            }
        }
        Ok(roll)
    }
}
