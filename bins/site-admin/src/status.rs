//! `site-admin status`: every stream in one line.

use std::fmt;

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use site_coordination::{SiteId, StreamStatus};

use crate::{
    Failure,
    commands::{connect, parser, time},
    output::Format,
};

#[derive(Args)]
pub(crate) struct Status {
    /// Only the streams of this Site.
    #[arg(long, value_parser = parser(SiteId::parse))]
    site: Option<SiteId>,
}

pub(crate) async fn run(arguments: Status, format: Format) -> Result<(), Failure> {
    let streams = connect().await?.producer.status(arguments.site.as_ref()).await?;
    format.heading(format_args!(
        "{:20} {:5} {:>8} {:>8} {:>8} {:>8} {:>4} {:>7} {:24} SESSION",
        "SITE", "ENV", "LAST", "DONE", "BACKLOG", "DUE", "GEN", "CANCELS", "SESSION SINCE"
    ))?;
    streams.into_iter().try_for_each(|status| format.print(&Row::of(status)))
}

/// A stream as it is now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    site: String,
    environment: &'static str,
    last_seq: i64,
    done_seq: i64,
    /// Commands without an ending.
    backlog: i64,
    due: Option<DueCommand>,
    generation: i64,
    session_id: Option<String>,
    session_opened_at: Option<DateTime<Utc>>,
    cancel_rev: u64,
    trimmed_seq: i64,
}

/// The command whose result is due.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DueCommand {
    seq: i64,
    age_seconds: u64,
}

impl Row {
    fn of(status: StreamStatus) -> Self {
        let (last_seq, done_seq) = (status.last_seq.get(), status.done_seq.get());
        let due =
            status.due.map(|due| DueCommand { seq: due.seq.get(), age_seconds: due.age_seconds });
        let (session_id, session_opened_at) = status
            .session
            .map(|session| (session.id.as_str().to_owned(), session.opened_at))
            .unzip();
        Self {
            site: status.stream.site.as_str().to_owned(),
            environment: status.stream.environment.as_str(),
            last_seq,
            done_seq,
            backlog: last_seq - done_seq,
            due,
            generation: status.generation.get(),
            session_id,
            session_opened_at,
            cancel_rev: status.cancel_rev,
            trimmed_seq: status.trimmed_seq.get(),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { site, environment, last_seq, done_seq, backlog, generation, cancel_rev, .. } =
            self;
        let due = self.due.as_ref().map_or_else(|| "-".to_owned(), |due| age(due.age_seconds));
        let since = self.session_opened_at.map_or_else(|| "-".to_owned(), time);
        let session = self.session_id.as_deref().unwrap_or("-");
        write!(
            f,
            "{site:20} {environment:5} {last_seq:>8} {done_seq:>8} {backlog:>8} {due:>8} \
             {generation:>4} {cancel_rev:>7} {since:24} {session}"
        )
    }
}

/// An age in its largest unit, such as `3h`.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}
