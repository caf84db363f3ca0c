//! Logging in again and again, until it comes out as it should.

use std::time::Duration;

use test_support::openssh::{Login, LoginError, SshKey, Sshd};
use tokio::time::{Instant, sleep};

/// Between two logins.
const PAUSE: Duration = Duration::from_millis(100);

/// Until a key lets a user in: how long after `since` it was inside; none where `within` is over.
pub(crate) async fn let_in(
    sshd: &Sshd,
    user: &str,
    key: &SshKey,
    since: Instant,
    within: Duration,
) -> Result<Option<Duration>, LoginError> {
    until(Login::LetIn, sshd, user, key, since, within).await
}

/// Until a key is refused: how long after `since` that was known; none where `within` is over.
pub(crate) async fn refused(
    sshd: &Sshd,
    user: &str,
    key: &SshKey,
    since: Instant,
    within: Duration,
) -> Result<Option<Duration>, LoginError> {
    until(Login::Refused, sshd, user, key, since, within).await
}

async fn until(
    wanted: Login,
    sshd: &Sshd,
    user: &str,
    key: &SshKey,
    since: Instant,
    within: Duration,
) -> Result<Option<Duration>, LoginError> {
    loop {
        let login = sshd.log_in(user, key).await?;
        let took = since.elapsed();
        if login == wanted {
            return Ok((took <= within).then_some(took));
        }
        if took > within {
            return Ok(None);
        }
        sleep(PAUSE).await;
    }
}
