//! The hints of what was stored just before the process ends.

use std::{sync::Arc, time::Duration};

use crate::state::State;

/// How long they may hold up the end: a database that does not answer must not.
const WITHIN: Duration = Duration::from_secs(5);

/// Sends what still waits to be sent, once nothing is stored any more: whoever waits for a result
/// hears of it now, and not by a look in some seconds.
pub(crate) async fn send_last_hints(state: Arc<State>) {
    if tokio::time::timeout(WITHIN, state.commands.flush_hints()).await.is_err() {
        tracing::warn!(error = "they were not sent in time", "commands.hint_lost");
    }
}
