//! Whether what the agent has acknowledged is in its files.
//!
//! The place is read from the database first, the files after it, and the changes last. So each user's
//! file has to be as some place of the feed says, the acknowledged one or a later one.

use std::{collections::BTreeSet, error::Error, path::Path};

use test_support::postgres::Cluster;
use tokio_postgres::Client;

use super::files::{Held, UNMANAGED, held};
use crate::ssh_site::DATABASE;

/// One change of the feed.
#[derive(Clone, Debug)]
struct Change {
    seq: i64,
    adds: bool,
    user: String,
    key_id: String,
}

/// What is stored of a Site's agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Acknowledged {
    /// Up to which change.
    pub(super) seq: i64,
    /// The last change.
    pub(super) head: i64,
    /// Whether the last comparison of the set gave a match, and came after a moment.
    pub(super) matches: bool,
    /// What could not be applied, as JSON.
    pub(super) failures: String,
}

/// A connection for questions beside everything.
pub(super) async fn connect(cluster: &Cluster) -> Result<Client, tokio_postgres::Error> {
    cluster.superuser(DATABASE).await
}

/// What is stored of a Site's agent; `since` is a moment of the database's clock, as text.
pub(super) async fn acknowledged(
    client: &Client,
    site: &str,
    since: &str,
) -> Result<Acknowledged, tokio_postgres::Error> {
    let sql = "SELECT feed.head, coalesce(ack.seq, 0), coalesce(ack.failures, '[]'),
                      coalesce(ack.attested = 'match' AND ack.attested_at > $2::text::timestamptz,
                               false)
                 FROM ssh_access.site_feed feed LEFT JOIN ssh_access.site_ack ack USING (site)
                WHERE feed.site = $1";
    let row = client.query_one(sql, &[&site, &since]).await?;
    let (head, seq, failures) = (row.get(0), row.get(1), row.get(2));
    Ok(Acknowledged { head, seq, failures, matches: row.get(3) })
}

/// Since when the server runs, as text.
pub(super) async fn runs_since(client: &Client) -> Result<String, tokio_postgres::Error> {
    Ok(client.query_one("SELECT pg_postmaster_start_time()::text", &[]).await?.get(0))
}

/// What is wrong with the files, where they are behind what was acknowledged.
pub(super) async fn behind(
    cluster: &Cluster,
    site: &str,
    folder: &Path,
) -> Result<Vec<String>, Box<dyn Error>> {
    let client = connect(cluster).await?;
    let seq = acknowledged(&client, site, "-infinity").await?.seq;
    let files = held(folder)?;
    let sql = "SELECT seq, operation = 'add', unix_user, key_id FROM ssh_access.site_change
                WHERE site = $1 ORDER BY seq";
    let rows = client.query(sql, &[&site]).await?;
    let changes: Vec<_> = rows
        .iter()
        .map(|row| Change {
            seq: row.get(0),
            adds: row.get(1),
            user: row.get(2),
            key_id: row.get(3),
        })
        .collect();
    if changes.first().is_some_and(|first| first.seq != 1) {
        return Err("the feed has lost its beginning: nothing can be compared".into());
    }
    Ok(judge(&changes, seq, &files))
}

/// The users whose files are as no place from `seq` on says.
fn judge(changes: &[Change], seq: i64, files: &Held) -> Vec<String> {
    let mut users: BTreeSet<&str> = changes.iter().map(|change| change.user.as_str()).collect();
    users.extend(files.keys().map(String::as_str));
    // Nothing of that one is ever applied, which is told as a failure.
    users.remove(UNMANAGED);
    let none = BTreeSet::new();
    let mut wrong = Vec::new();
    for user in users {
        let found = files.get(user).unwrap_or(&none);
        let mut at = BTreeSet::new();
        let mut fits = seq == 0 && found.is_empty();
        for change in changes {
            if change.user == user && change.adds {
                at.insert(change.key_id.clone());
            } else if change.user == user {
                at.remove(&change.key_id);
            }
            fits |= change.seq >= seq && at == *found;
        }
        if !fits {
            wrong.push(format!(
                "{user} has {found:?} after {seq} was acknowledged, and at the head {at:?}"
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(seq: i64, adds: bool, user: &str, key_id: &str) -> Change {
        Change { seq, adds, user: user.to_owned(), key_id: key_id.to_owned() }
    }

    /// ada: a at 1, a and b at 2, b at 4; bob: c at 3.
    fn changes() -> Vec<Change> {
        vec![
            change(1, true, "ada", "a"),
            change(2, true, "ada", "b"),
            change(3, true, "bob", "c"),
            change(4, false, "ada", "a"),
        ]
    }

    fn files(ada: &[&str], bob: &[&str]) -> Held {
        let set = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let all = [("ada".to_owned(), set(ada)), ("bob".to_owned(), set(bob))];
        all.into_iter().filter(|(_, ids): &(String, BTreeSet<String>)| !ids.is_empty()).collect()
    }

    #[test]
    fn files_at_the_acknowledged_place_or_later_are_true() {
        for (seq, ada, bob) in [
            (0, &[][..], &[][..]),
            (0, &["b"], &["c"]),
            (2, &["a", "b"], &[]),
            (2, &["b"], &[]),
            (2, &["a", "b"], &["c"]),
            (3, &["a", "b"], &["c"]),
            (4, &["b"], &["c"]),
        ] {
            assert_eq!(judge(&changes(), seq, &files(ada, bob)), [""; 0], "{seq} {ada:?} {bob:?}");
        }
    }

    #[test]
    fn files_that_are_older_or_hold_something_else_are_not() {
        for (seq, ada, bob, wrong) in [
            (1, &[][..], &[][..], 1),
            (2, &["a"], &[], 1),
            (3, &["a", "b"], &[], 1),
            (4, &["a", "b"], &["c"], 1),
            (4, &["a", "b"], &[], 2),
            (0, &["x"], &[], 1),
        ] {
            assert_eq!(
                judge(&changes(), seq, &files(ada, bob)).len(),
                wrong,
                "{seq} {ada:?} {bob:?}"
            );
        }
        let strange = Held::from([("carl".to_owned(), ["z".to_owned()].into())]);
        assert_eq!(judge(&changes(), 0, &strange).len(), 1);
    }
}
