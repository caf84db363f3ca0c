//! Why a process does not start.

use std::{fmt::Display, net::SocketAddr};

use service_kit::{EXIT_SETTINGS, Limits, Listener, SettingsErrors};

/// The exit code where a part outside can't be had (`EX_UNAVAILABLE` of sysexits).
pub const EXIT_UNAVAILABLE: u8 = 69;
/// The exit code where a rule is broken, and of a fault of ours (`EX_SOFTWARE`).
pub const EXIT_SOFTWARE: u8 = 70;

/// Why a process does not start.
#[derive(Debug)]
pub struct Refusal {
    /// Its exit code.
    pub code: u8,
    /// For a person; it may have several lines. Never a secret.
    pub reason: String,
}

impl Refusal {
    /// Every mistake of the settings.
    #[must_use]
    pub fn settings(errors: &SettingsErrors) -> Self {
        Self { code: EXIT_SETTINGS, reason: format!("the settings are wrong:\n{errors}") }
    }

    /// A rule is broken, or it is a fault of ours.
    pub fn software(error: impl Display) -> Self {
        Self { code: EXIT_SOFTWARE, reason: error.to_string() }
    }

    /// The exit code of a process, after the reason was told where it did not start.
    #[must_use]
    pub fn exit_code(process: &str, ended: Result<u8, Self>) -> u8 {
        ended.unwrap_or_else(|refusal| {
            eprintln!("{process} does not start: {}", refusal.reason);
            refusal.code
        })
    }
}

/// Listens at the address of a setting.
///
/// # Errors
///
/// The address can't be had.
pub async fn bind(setting: &str, address: SocketAddr, limits: Limits) -> Result<Listener, Refusal> {
    Listener::bind(address, limits).await.map_err(|error| Refusal {
        code: EXIT_UNAVAILABLE,
        reason: format!("{setting}: {address}: {error}"),
    })
}

/// Where it listens, for the log.
#[must_use]
pub fn address_of(listener: &Listener) -> String {
    listener.local_addr().map_or_else(|error| error.to_string(), |address| address.to_string())
}
