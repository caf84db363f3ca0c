//! The native grants that are in force, and the watching of their file.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use callers::{Found, Grant, Grants, LiveGrants, NativeBearer, Refused};
use service_kit::Alarms;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::{files, start::Clock, state::ALARM_GRANTS};

/// The largest grants file, in bytes; `callers` refuses a larger one as well.
const MOST_BYTES: usize = 1024 * 1024;

/// How often the expiry of a grant is looked at while a request is under way: the clock may be set.
const EXPIRY_EVERY: Duration = Duration::from_secs(1);

/// Answers for whom a bearer stands, by the grants in force. Clones share them.
#[derive(Clone)]
pub(crate) struct NativeGrants {
    current: watch::Receiver<Option<Arc<Grants>>>,
    clock: Clock,
}

/// Why a bearer is not let in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotGranted {
    /// No grants are in force, so nothing can be said about it.
    Unavailable,
    /// It is nobody's.
    Refused(Refused),
    /// It stands for another principal than when its request began.
    Changed,
}

/// Follows the file. [`GrantsWatch::run`] must run for as long as anybody calls.
pub(crate) struct GrantsWatch {
    path: PathBuf,
    site_is_named: bool,
    live: LiveGrants,
    sender: watch::Sender<Option<Arc<Grants>>>,
    alarms: Alarms,
    clock: Clock,
}

impl NativeGrants {
    /// The grants of a listener without a file: none, for ever.
    pub(crate) fn none(clock: Clock) -> Self {
        Self { current: watch::channel(None).1, clock }
    }

    /// The grant of a bearer.
    pub(crate) fn authenticate(&self, bearer: &NativeBearer) -> Result<Grant, NotGranted> {
        let grants = self.current.borrow().clone().ok_or(NotGranted::Unavailable)?;
        let grant = grants.authenticate(bearer, (self.clock)()).map_err(NotGranted::Refused)?;
        Ok(grant.clone())
    }

    /// Whether a bearer still stands for the principal of `grant`.
    pub(crate) fn confirm(&self, bearer: &NativeBearer, grant: &Grant) -> Result<(), NotGranted> {
        let now = self.authenticate(bearer)?;
        if now.principal() == grant.principal() { Ok(()) } else { Err(NotGranted::Changed) }
    }

    /// Returns when that is no longer so, with the reason: by another file or by the clock.
    pub(crate) async fn until_ended(&self, bearer: &NativeBearer, grant: &Grant) -> NotGranted {
        let mut current = self.current.clone();
        loop {
            current.mark_unchanged();
            if let Err(reason) = self.confirm(bearer, grant) {
                return reason;
            }
            tokio::select! {
                changed = current.changed() => if changed.is_err() {
                    // Nobody follows the file: the process is ending, or never followed one.
                    std::future::pending::<()>().await;
                },
                () = sleep(EXPIRY_EVERY) => {}
            }
        }
    }
}

impl GrantsWatch {
    /// Begins with what was found at the start. A listener that knows no Site takes no grants up.
    pub(crate) fn new(
        path: PathBuf,
        found: Found,
        site_is_named: bool,
        last_good_for: Duration,
        alarms: Alarms,
        clock: Clock,
    ) -> (Self, NativeGrants) {
        let (sender, current) = watch::channel(None);
        let live = LiveGrants::new(last_good_for);
        let mut watch = Self { path, site_is_named, live, sender, alarms, clock };
        watch.observe(found);
        (watch, NativeGrants { current, clock })
    }

    /// Follows the file for ever.
    pub(crate) async fn run(mut self) {
        let path = self.path.clone();
        files::watch(move || look(&path), |found| self.observe(found.unwrap_or_else(hung))).await;
    }

    fn observe(&mut self, found: Found) {
        let found = match found {
            Found::Text(_) | Found::Unusable(_) if !self.site_is_named => Found::Unusable(
                "the grants are not taken up, as SITE_API_SITE_ID is not set".to_owned(),
            ),
            found => found,
        };
        let standing = self.live.observe(found, Instant::now().into_std(), (self.clock)());
        match &standing.alarm {
            Some(reason) => {
                self.alarms.raise(ALARM_GRANTS, format!("{}: {reason}", self.path.display()));
            }
            None => self.alarms.clear(ALARM_GRANTS),
        }
        let grants = standing.grants.clone();
        let same = |current: &Option<Arc<Grants>>| match (current, &grants) {
            (Some(current), Some(new)) => Arc::ptr_eq(current, new),
            (None, None) => true,
            _ => false,
        };
        self.sender.send_if_modified(|current| {
            let changed = !same(current);
            if changed {
                let count = grants.as_ref().map(|grants| grants.iter().count());
                tracing::info!(grants.count = count, "native_grants.replaced");
                current.clone_from(&grants);
            }
            changed
        });
    }
}

/// What is at the place of the grants file.
pub(crate) fn look(path: &Path) -> Found {
    match files::read(path, MOST_BYTES) {
        Ok(None) => Found::Absent,
        Ok(Some(bytes)) => match std::str::from_utf8(&bytes) {
            Ok(text) => Found::Text(text.to_owned()),
            Err(_) => Found::Unusable("the file is not UTF-8".to_owned()),
        },
        Err(reason) => Found::Unusable(reason),
    }
}

fn hung() -> Found {
    Found::Unusable("the file can't be read: no answer for some seconds".to_owned())
}
