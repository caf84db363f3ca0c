//! Claims about logins, and what is done for them at each Site of the lane.

use std::{
    error::Error,
    fs, io,
    os::unix::fs::{MetadataExt, chown},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use test_support::openssh::{Login, LoginError, SshKey, Sshd};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{claim::Claim, ssh_site::WINDOW};

/// Between two logins.
const PAUSE: Duration = Duration::from_millis(50);

/// How long something took, where it came.
pub(super) fn timed(claim: &str, took: Option<Duration>, from: &str, within: Duration) -> Claim {
    let figure = match took {
        Some(took) => format!("{:.1} s {from}", took.as_secs_f64()),
        None => format!("not within {} s {from}", within.as_secs()),
    };
    Claim::new(claim, figure, took.is_some_and(|took| took <= within))
}

/// Whether a login came out as it should.
pub(super) fn login(claim: &str, came_to: Login, wanted: Login) -> Claim {
    Claim::new(claim, shown(came_to), came_to == wanted)
}

pub(super) fn shown(login: Login) -> &'static str {
    match login {
        Login::LetIn => "let in",
        Login::Refused => "refused",
    }
}

/// Writes a file with a key into a user's home, as that user does.
pub(super) fn write_own_file(sshd: &Sshd, user: &str, key: &SshKey) -> io::Result<()> {
    let (home, folder) = (sshd.home(user), sshd.home(user).join(".ssh"));
    let owner = fs::metadata(home)?;
    let file = folder.join("authorized_keys");
    fs::create_dir(&folder)?;
    fs::write(&file, format!("{}\n", key.public()))?;
    for path in [&folder, &file] {
        chown(path, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

/// Ends are told in whole seconds.
pub(super) fn whole_seconds(time: DateTime<Utc>) -> DateTime<Utc> {
    DateTime::from_timestamp(time.timestamp(), 0).unwrap_or(time)
}

/// sshd compares whole seconds, and takes a key for as long as the second lasts that it reads.
const SECOND_OF_ITS_END: TimeDelta = TimeDelta::seconds(1);

/// A key whose user's file nobody had a reason to write for a window: its lease was renewed.
pub(super) async fn renewed(
    sshd: &Sshd,
    user: &str,
    (key, since): &(SshKey, Instant),
) -> Result<Claim, LoginError> {
    sleep_until(*since + WINDOW).await;
    let came_to = sshd.log_in(user, key).await?;
    let figure = format!("{}, {:.0} s later", shown(came_to), since.elapsed().as_secs_f64());
    let claim = "a key that nobody touched for a window lets in as before";
    Ok(Claim::new(claim, figure, came_to == Login::LetIn))
}

/// Logs in until a key's end is over: it lets in before, and never after.
pub(super) async fn ends(
    sshd: &Sshd,
    user: &str,
    key: &SshKey,
    end: DateTime<Utc>,
    clock: fn() -> DateTime<Utc>,
) -> Result<Claim, Box<dyn Error>> {
    let (mut before, mut after) = (0, 0);
    let over = end + SECOND_OF_ITS_END;
    let first_refusal = loop {
        let began = clock();
        match sshd.log_in(user, key).await? {
            Login::LetIn if began < over => before += 1,
            Login::LetIn => after += 1,
            // It may not have come into force yet.
            Login::Refused if before == 0 && began < end => {}
            Login::Refused => break clock(),
        }
        if clock() > end + TimeDelta::from_std(WINDOW)? {
            break clock();
        }
        sleep(PAUSE).await;
    };
    let late = (first_refusal - end).num_milliseconds();
    let (when, late) = if late < 0 { ("before", -late) } else { ("after", late) };
    let figure = format!(
        "let in {before} times until then, {after} after; refused {}.{} s {when} its end",
        late / 1000,
        late % 1000 / 100
    );
    let claim = "a key that ends lets in until its end, and not after";
    let early = first_refusal < end - SECOND_OF_ITS_END;
    Ok(Claim::new(claim, figure, before > 0 && after == 0 && !early))
}
