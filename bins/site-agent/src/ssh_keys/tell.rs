//! What the loop logs of failed calls, of snapshots and of leases.

use service_kit::error_chain;
use site_client::{CallError, Refusal, SshLease};

use super::Why;
use crate::{
    runtime::tell_failure,
    verdict::{Verdict, verdict},
};

/// Logs a failed call; says whether everything is to be written anew.
pub(super) fn tell_call(call: &'static str, error: &CallError) -> bool {
    if verdict(error) != Verdict::Recover {
        tell_failure(call, error);
        return false;
    }
    let (code, cause) = (error.code(), error_chain(error));
    if error.refusal() == Some(Refusal::CursorCompacted) {
        tracing::warn!(
            call.name = call,
            problem.code = code,
            error = cause,
            detail = "the agent was away for longer than changes are kept: a snapshot is taken",
            "ssh_keys.recovering"
        );
    } else {
        tracing::error!(
            alarm.name = "ssh_feed_diverged",
            call.name = call,
            problem.code = code,
            error = cause,
            detail = "the feed is not the one that the agent has seen: a snapshot is taken",
            "ssh_keys.recovering"
        );
    }
    true
}

pub(super) fn tell_mending(why: Why) {
    let detail = match why {
        Why::Mismatch => "the files are not what is in force: a snapshot is taken",
        Why::Changed => "somebody has changed a file of ours: a snapshot is taken",
        Why::Failures => "more failed than is kept: a snapshot is taken to try it again",
        // Told where it was noticed.
        Why::NoState | Why::Place | Why::Refused => return,
    };
    tracing::error!(alarm.name = "ssh_set_mismatch", detail, "ssh_keys.mending");
}

/// Logs that a lease is over, or that it is good again.
pub(super) fn tell_lease(lease: SshLease) {
    let until = tracing::field::display(lease.until);
    if lease.is_over() {
        tracing::error!(
            alarm.name = "ssh_lease_over",
            ssh.lease_until = until,
            detail = "the control plane's `ssh-access` does not propagate: no line is renewed",
            "ssh_keys.lease_over"
        );
    } else {
        tracing::info!(ssh.lease_until = until, "ssh_keys.lease_good_again");
    }
}

/// Logs that files are past their lease, or that they are good again.
pub(super) fn tell_late(late: bool) {
    if late {
        tracing::error!(
            alarm.name = "ssh_leases_late",
            detail = "files are past their lease before they are renewed: the window is too short \
                      for so many, or the disk too slow",
            "ssh_keys.leases_late"
        );
    } else {
        tracing::info!("ssh_keys.leases_in_time");
    }
}
