//! What every request shares.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ring::rand::{SecureRandom, SystemRandom};
use service_kit::Alarms;
use site_coordination::{RuntimeSide, SiteId};
use tokio::sync::Semaphore;

use crate::{
    authority::Authority, executions::output::Outputs, grants::NativeGrants, limits::Limits,
    login::Logins, service_accounts::ServiceAccounts, ssh_access::SshAccess, start::Clock,
};

/// The assembled contexts and what is needed around them.
pub(crate) struct State {
    /// The Site of this listener.
    pub(crate) site: SiteId,
    /// Who native bearers are.
    pub(crate) grants: NativeGrants,
    /// Who tokens of ServiceAccounts are.
    pub(crate) service_accounts: ServiceAccounts,
    /// Who access tokens of the login issuer are.
    pub(crate) login: Logins,
    /// The commands of the Site.
    pub(crate) commands: RuntimeSide,
    /// Execution authority, where it is enabled.
    pub(crate) authority: Option<Authority>,
    /// The private outputs of the Site.
    pub(crate) outputs: Outputs,
    /// The keys that are in force at the Site, where SSH access is served.
    pub(crate) ssh_access: Option<SshAccess>,
    /// What callers may take.
    pub(crate) limits: Limits,
    /// Who may hold a private output in memory, until the database has it: so many at once.
    pub(crate) uploads: Arc<Semaphore>,
    /// What an operator should know.
    pub(crate) alarms: Alarms,
    /// The clock.
    pub(crate) clock: Clock,
    /// The random source.
    pub(crate) random: SystemRandom,
    /// How often a request found that the database does not answer.
    pub(crate) database_failures: AtomicU64,
}

/// Private outputs that are stored at once. Each stands in memory as a whole, perhaps more
/// than once on its way to the database.
pub(crate) const UPLOADS: usize = 2;

/// The database does not answer.
pub(crate) const ALARM_DATABASE: &str = "database";
/// The grants file can't be used.
pub(crate) const ALARM_GRANTS: &str = "native_grants";

/// The certificate can't be replaced, or its time is or will soon be over.
pub(crate) const ALARM_CERTIFICATE: &str = "certificate";

/// Tokens of ServiceAccounts can't be reviewed.
pub(crate) const ALARM_TOKEN_REVIEW: &str = "token_review";

/// The keys of the login issuer can't be fetched.
pub(crate) const ALARM_LOGIN: &str = "login";

/// A change of keys waits for too long to be brought to the feed of the Site.
pub(crate) const ALARM_PROPAGATION: &str = "ssh_propagation";

/// Nobody could be asked whether a member has a permission, for some time.
pub(crate) const ALARM_BETO: &str = "beto";

impl State {
    /// Notes that a request found that the database does not answer, and raises the alarm.
    pub(crate) fn database_failed(&self, reason: String) {
        self.database_failures.fetch_add(1, Ordering::Relaxed);
        self.alarms.raise(ALARM_DATABASE, reason);
    }

    /// How often that was noted.
    pub(crate) fn database_failures(&self) -> u64 {
        self.database_failures.load(Ordering::Relaxed)
    }

    /// A number from 0 up to 1, evenly distributed; 0 where the random source fails.
    pub(crate) fn fraction(&self) -> f64 {
        let mut bytes = [0; 4];
        match self.random.fill(&mut bytes) {
            Ok(()) => f64::from(u32::from_be_bytes(bytes)) / f64::from(u32::MAX),
            Err(_) => 0.0,
        }
    }
}
