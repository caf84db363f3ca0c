//! What reads bytes from outside and is not public for programs: for tests without a database. No
//! promise is made to anybody else.

use crate::{Environment, wakeups::News};

/// Which stream a hint is of, whether it tells of endings, and its text anew.
#[must_use]
pub fn hint(payload: &str) -> Option<(Environment, bool, String)> {
    let (environment, news) = News::parse(payload)?;
    Some((environment, news == News::Done, news.payload(environment)))
}
