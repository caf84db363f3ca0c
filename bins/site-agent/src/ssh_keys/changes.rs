//! Changes are applied, user by user.

use std::{collections::BTreeMap, io, time::Duration};

use chrono::{DateTime, Utc};
use site_client::SshPage;
use site_protocol::{SshChange, SshOperation};
use ssh_keys::{KeyId, PublicKey, UnixUser};
use tokio::time::Instant;

use super::{
    Break, SshKeys, Why,
    failures::{Again, Failures, Wanted},
    file::{HeldKey, Keys, MAX_KEYS, UserFile},
    folder::{Batch, FileId, Folder, Obstacle, Ours, Place},
    state::Position,
};

/// Between two tries of what failed.
const AGAIN_EVERY: Duration = Duration::from_secs(10);

/// An empty answer that comes sooner than this was not waited for: the next poll backs off.
const HASTY: Duration = Duration::from_millis(200);

/// What is wanted of each user.
type WantedOfAll = BTreeMap<UnixUser, Vec<Wanted>>;

impl SshKeys {
    /// Polls once and applies what came. What it then says of `position` is durable.
    pub(super) async fn pull(&mut self, position: &mut Position) -> Result<(), Break> {
        let (limit, wait) = (self.pace.limit, self.wait(position));
        let asked_at = Instant::now();
        let answer = tokio::select! {
            biased;
            () = self.stop.asked() => return Err(Break::End(self.ending())),
            answer = self.client.ssh_changes(position.cursor, limit, wait) => answer,
        };
        let page = answer.map_err(|error| Break::Call("ssh_changes", error))?;
        self.learn(page.lease);
        let at_head = page.next == page.head;
        if !page.changes.is_empty() {
            self.apply_page(page, position).await?;
            self.unacknowledged = true;
            self.backoff.reset();
        } else if !at_head || (!wait.is_zero() && asked_at.elapsed() < HASTY) {
            let time = self.backoff.next(None);
            if !self.stop.sleep(time).await {
                return Err(Break::End(self.ending()));
            }
        } else {
            // Nothing has changed up to the head: what the files hold is in force there.
            self.take_lease(page.lease, position);
            self.backoff.reset();
        }
        self.at_head = at_head;
        Ok(())
    }

    async fn apply_page(&mut self, page: SshPage, position: &mut Position) -> Result<(), Break> {
        let mut next = position.clone();
        // On the way to the head nothing is known to be in force any more.
        if page.next == page.head {
            self.take_lease(page.lease, &mut next);
        }
        let wanted = wanted(&page.changes, &mut next.failures);
        self.apply(wanted, &mut next).await?;
        next.cursor = page.next;
        self.state.keep(&next)?;
        *position = next;
        tracing::info!(
            ssh.seq = position.cursor.seq(),
            ssh.changes = page.changes.len(),
            ssh.failures = position.failures.len(),
            "ssh_keys.changes_applied"
        );
        Ok(())
    }

    /// Tries what failed once more, from time to time.
    pub(super) async fn try_failures_again(
        &mut self,
        position: &mut Position,
    ) -> Result<(), Break> {
        if position.failures.is_empty() || Instant::now() < self.again_at {
            return Ok(());
        }
        self.again_at = Instant::now() + AGAIN_EVERY;
        let mut next = position.clone();
        let users = next.failures.users();
        self.apply(users.into_iter().map(|user| (user, Vec::new())).collect(), &mut next).await?;
        if next != *position {
            self.state.keep(&next)?;
            *position = next;
            self.unacknowledged = true;
        }
        Ok(())
    }

    /// Applies what is wanted, and what failed before of the same users. When it returns it is
    /// durable, but for what is among the failures.
    async fn apply(&mut self, wanted: WantedOfAll, next: &mut Position) -> Result<(), Break> {
        let mut rest = wanted.into_iter().peekable();
        loop {
            let mut batch = self.folder.batch();
            let mut planned = Vec::new();
            while !batch.is_full()
                && let Some((user, changes)) = rest.next()
            {
                let changes = [next.failures.of(&user), changes].concat();
                let plan = plan(&self.folder, &mut batch, &user, &changes, next.lease)?;
                planned.push((user, changes, plan));
            }
            let refused: BTreeMap<_, _> = batch.commit()?.into_iter().collect();
            let mut changed = false;
            for (user, changes, plan) in planned {
                let plan = refused.get(&user).map_or(plan, |obstacle| Plan::Taken(*obstacle));
                changed |= plan == Plan::Changed;
                note(&user, changes, plan, &mut next.failures);
            }
            if changed {
                self.mend(Why::Changed)?;
            }
            if rest.peek().is_none() {
                return Ok(());
            }
            self.breathe().await?;
        }
    }
}

/// What changes want of each user, in their order. What is refused whatever stands in its place is a
/// failure at once.
fn wanted(changes: &[SshChange], failures: &mut Failures) -> WantedOfAll {
    let mut wanted = WantedOfAll::new();
    for change in changes {
        let SshChange { unix_user, key_id, public_key, expires_at, .. } = change;
        let mut want = |user, change| wanted.entry(user).or_default().push(change);
        match change.op {
            SshOperation::Add => {
                let key = public_key.as_deref().unwrap_or_default();
                match checked(unix_user, key_id, key, *expires_at) {
                    Ok((user, id, held)) => want(user, (id, Some(held))),
                    Err(reason) => failures.note(unix_user, key_id, &reason, Again::Nothing),
                }
            }
            SshOperation::Remove => match checked_names(unix_user, key_id) {
                Ok((user, id)) => want(user, (id, None)),
                // It never came into a file.
                Err(_) => failures.forget(unix_user, key_id),
            },
        }
    }
    wanted
}

/// A key that came, by this agent's own rules: nothing of the wire reaches a file without them.
///
/// # Errors
///
/// The reason, for people, after a word for programs.
pub(super) fn checked(
    user: &str,
    key_id: &str,
    text: &str,
    ends: Option<DateTime<Utc>>,
) -> Result<(UnixUser, KeyId, HeldKey), String> {
    let (user, id) = checked_names(user, key_id)?;
    let key = PublicKey::parse(text).map_err(|rule| format!("refused_key: {rule}"))?;
    // A comment would be dropped, and the set be another one than the Site API's.
    if key.to_string() != text {
        return Err("refused_key: it is not written as a type and the key".to_owned());
    }
    Ok((user, id, HeldKey::new(key, ends)))
}

fn checked_names(user: &str, key_id: &str) -> Result<(UnixUser, KeyId), String> {
    let user = UnixUser::parse(user).map_err(|rule| format!("refused_user: {rule}"))?;
    let id = KeyId::parse(key_id).map_err(|rule| format!("refused_key_id: {rule}"))?;
    Ok((user, id))
}

/// What is to become of a user's file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    /// It is, or will be with its batch, what is wanted, but for these keys, which are too many.
    Applied { too_many: Vec<KeyId> },
    /// Something stands in its place.
    Taken(Obstacle),
    /// Somebody has changed it: what it should hold is not known here.
    Changed,
}

fn plan(
    folder: &Folder,
    batch: &mut Batch<'_>,
    user: &UnixUser,
    changes: &[Wanted],
    lease: DateTime<Utc>,
) -> io::Result<Plan> {
    let (id, before): (Option<FileId>, Keys) = match folder.look(user)? {
        Place::Free => (None, Keys::new()),
        Place::Ours(Ours { id, content }) => (Some(id), content.keys),
        Place::Changed(_) => return Ok(Plan::Changed),
        Place::Taken(obstacle) => return Ok(Plan::Taken(obstacle)),
    };
    let (mut keys, mut too_many) = (before.clone(), Vec::new());
    for (key_id, held) in changes {
        match held {
            None => {
                keys.remove(key_id);
                too_many.retain(|id| id != key_id);
            }
            Some(_) if keys.len() >= MAX_KEYS && !keys.contains_key(key_id) => {
                too_many.push(key_id.clone());
            }
            Some(held) => {
                keys.insert(key_id.clone(), held.clone());
            }
        }
    }
    match id {
        _ if keys == before => {}
        Some(id) if keys.is_empty() => batch.remove(user, id),
        id => batch.write(user, &UserFile::new(keys, lease).to_string(), id)?,
    }
    Ok(Plan::Applied { too_many })
}

/// Notes what became of a user's changes.
fn note(user: &UnixUser, changes: Vec<Wanted>, plan: Plan, failures: &mut Failures) {
    let user = user.as_str();
    // The last word on each key.
    let last: BTreeMap<KeyId, Option<HeldKey>> = changes.into_iter().collect();
    for (id, held) in last {
        let (reason, is_ours) = match &plan {
            Plan::Applied { too_many } if !too_many.contains(&id) => {
                failures.forget(user, id.as_str());
                continue;
            }
            Plan::Applied { .. } => (format!("too_many_keys: a user has at most {MAX_KEYS}"), true),
            Plan::Changed => {
                ("changed_file: somebody has changed the user's file".to_owned(), true)
            }
            Plan::Taken(obstacle) => (obstacle.to_string(), obstacle.may_be_ours()),
        };
        match held {
            Some(held) => failures.note(user, id.as_str(), &reason, Again::Add(held)),
            None if is_ours => failures.note(user, id.as_str(), &reason, Again::Remove),
            // There is no file of ours that could hold the key.
            None => failures.forget(user, id.as_str()),
        }
    }
}
