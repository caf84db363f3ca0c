//! Everything that is in force, written in one pass in bounded memory.
//!
//! Users' files are written as their keys come, at most some hundred at once. Nothing that a file
//! alone tells is lost by that: a snapshot that ends early leaves files that are newer than the
//! agent's place, and the changes after that place come to the same. The file of a user who is not in
//! it goes only after the snapshot has said that it is complete.

use chrono::{DateTime, Utc};
use site_client::SshLease;
use site_protocol::SshSnapshotKey;
use ssh_keys::{KeyId, UnixUser};
use tokio::time::Instant;

use super::{
    Break, SshKeys, Why,
    changes::checked,
    failures::{Again, Failures},
    file::{HeldKey, Keys, MAX_KEYS, UserFile},
    folder::{Obstacle, Ours, Place},
    refresh::MOMENTS,
    state::Position,
};

/// Users, and keys, that are held in memory before they are written.
const MOST_USERS: usize = 256;
const MOST_HELD: usize = 1_024;

/// A snapshot under way.
struct Taking {
    lease: SshLease,
    /// A file that is good until then stays as it is, where its keys are right and it says no later end
    /// than the lease.
    good_until: DateTime<Utc>,
    /// Every file is written, whatever it holds.
    everything: bool,
    /// A moment until which all files are good that were gone through.
    files_until: DateTime<Utc>,
    failures: Failures,
    /// Users whose keys are whole, and how many they are.
    ready: Vec<(UnixUser, Keys)>,
    held: usize,
    /// The keys of the user that comes now.
    user: Option<(UnixUser, Keys)>,
    /// Users with a file, in order, the next one last, that have not come yet.
    left: Vec<UnixUser>,
    /// Users with a file that can't come any more.
    gone: Vec<UnixUser>,
}

impl SshKeys {
    /// Takes a snapshot; when it returns, all of it is durable, and so is the place.
    pub(super) async fn snapshot(&mut self, why: Why) -> Result<Position, Break> {
        let answer = tokio::select! {
            biased;
            () = self.stop.asked() => return Err(Break::End(self.ending())),
            answer = self.client.ssh_snapshot() => answer,
        };
        let failed = |error| Break::Call("ssh_snapshot", error);
        let mut snapshot = answer.map_err(failed)?;
        let lease = snapshot.lease();
        self.learn(lease);
        (self.pass, self.to_renew_all, self.at_head) = (None, false, false);
        let mut left = self.folder.users()?;
        left.reverse();
        let half = (lease.until - lease.server_time) / 2;
        let mut taking = Taking {
            lease,
            good_until: lease.server_time + half,
            everything: why == Why::Mismatch,
            files_until: lease.until,
            failures: Failures::default(),
            ready: Vec::new(),
            held: 0,
            user: None,
            left,
            gone: Vec::new(),
        };
        let mut count = 0_u64;
        loop {
            let next = tokio::select! {
                biased;
                () = self.stop.asked() => return Err(Break::End(self.ending())),
                next = snapshot.next() => next.map_err(failed)?,
            };
            let Some(key) = next else { break };
            count += 1;
            taking.take(&key);
            if taking.ready.len() >= MOST_USERS || taking.held >= MOST_HELD {
                self.write_ready(&mut taking)?;
                self.breathe().await?;
            }
        }
        taking.end_user();
        self.write_ready(&mut taking)?;
        taking.gone.append(&mut taking.left);
        for users in std::mem::take(&mut taking.gone).chunks(MOST_USERS) {
            self.remove(users, &mut taking.failures)?;
            self.breathe().await?;
        }
        // Also where not a file had to be written.
        self.folder.batch().commit()?;
        let position = Position {
            cursor: snapshot.cursor(),
            lease: lease.until,
            files_until: taking.files_until,
            failures: taking.failures,
        };
        self.state.keep(&position)?;
        self.leases_are_late(false);
        self.unacknowledged = true;
        self.attest_at = Instant::now();
        if position.failures.are_cut() {
            // The set can't be compared. It is tried again later, not at once.
            self.attest_at += self.pace.attest_every;
        }
        tracing::info!(
            ssh.seq = position.cursor.seq(),
            ssh.keys = count,
            ssh.failures = position.failures.len(),
            "ssh_keys.snapshot_applied"
        );
        Ok(position)
    }

    /// Brings the users that are ready into their files.
    fn write_ready(&self, taking: &mut Taking) -> Result<(), Break> {
        let ready = std::mem::take(&mut taking.ready);
        taking.held = 0;
        let mut batch = self.folder.batch();
        let mut keys_of = Vec::new();
        for (user, keys) in ready {
            let replaces = match self.folder.look(&user)? {
                Place::Free => None,
                Place::Ours(Ours { content, .. })
                    if !taking.everything
                        && content.keys == keys
                        && content.lease >= taking.good_until
                        && content.lease - taking.lease.until <= MOMENTS =>
                {
                    taking.files_until = taking.files_until.min(content.lease);
                    continue;
                }
                Place::Ours(Ours { id, .. }) | Place::Changed(id) => Some(id),
                Place::Taken(obstacle) => {
                    taking.not_written(&user, keys, obstacle);
                    continue;
                }
            };
            let content = UserFile::new(keys.clone(), taking.lease.until);
            batch.write(&user, &content.to_string(), replaces)?;
            keys_of.push((user, keys));
        }
        for (user, obstacle) in batch.commit()? {
            if let Some(at) = keys_of.iter().position(|(written, _)| *written == user) {
                let (_, keys) = keys_of.swap_remove(at);
                taking.not_written(&user, keys, obstacle);
            }
        }
        Ok(())
    }

    /// Removes the files of users who are not in the snapshot.
    fn remove(&self, users: &[UnixUser], failures: &mut Failures) -> Result<(), Break> {
        let mut batch = self.folder.batch();
        let mut keys_of = Vec::new();
        for user in users {
            match self.folder.look(user)? {
                Place::Ours(Ours { id, content }) => {
                    batch.remove(user, id);
                    keys_of.push((user, content.keys));
                }
                Place::Changed(id) => batch.remove(user, id),
                Place::Free | Place::Taken(_) => {}
            }
        }
        for (user, obstacle) in batch.commit()? {
            let keys = keys_of.iter().find(|(removed, _)| **removed == user);
            let ids = keys.map(|(_, keys)| keys.keys()).into_iter().flatten();
            for id in ids {
                failures.note(user.as_str(), id.as_str(), &obstacle.to_string(), Again::Remove);
            }
        }
        Ok(())
    }
}

impl Taking {
    /// Takes the next key.
    fn take(&mut self, key: &SshSnapshotKey) {
        let SshSnapshotKey { unix_user, key_id, public_key, expires_at, .. } = key;
        let (user, id, held) = match checked(unix_user, key_id, public_key, *expires_at) {
            Ok(checked) => checked,
            Err(reason) => return self.failures.note(unix_user, key_id, &reason, Again::Nothing),
        };
        if self.user.as_ref().is_none_or(|(current, _)| *current != user) {
            self.end_user();
            self.come(&user);
            self.user = Some((user.clone(), Keys::new()));
        }
        self.hold(user.as_str(), id, held);
    }

    fn hold(&mut self, user: &str, id: KeyId, held: HeldKey) {
        let Some((_, keys)) = &mut self.user else { return };
        if keys.len() >= MAX_KEYS {
            let reason = format!("too_many_keys: a user has at most {MAX_KEYS}");
            self.failures.note(user, id.as_str(), &reason, Again::Add(held));
        } else {
            keys.insert(id, held);
            self.held += 1;
        }
    }

    /// The keys of the user that came last are whole.
    fn end_user(&mut self) {
        self.ready.extend(self.user.take());
    }

    /// A user comes; those before it that have a file can't come any more.
    fn come(&mut self, user: &UnixUser) {
        while let Some(next) = self.left.pop_if(|next| *next <= *user) {
            if next != *user {
                self.gone.push(next);
            }
        }
    }

    fn not_written(&mut self, user: &UnixUser, keys: Keys, obstacle: Obstacle) {
        for (id, held) in keys {
            let reason = obstacle.to_string();
            self.failures.note(user.as_str(), id.as_str(), &reason, Again::Add(held));
        }
    }
}
