//! A look at the folder without end, beside everything that happens: each file has to be whole at each
//! moment.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use chrono::{DateTime, Utc};

use super::files::look;

/// Between two looks: the other processor is for everybody else.
const PAUSE: Duration = Duration::from_millis(2);
/// How many faults are kept.
const MOST: usize = 20;

/// Somebody who looks, on a thread of his own.
pub(super) struct Watch {
    enough: Arc<AtomicBool>,
    thread: Option<JoinHandle<Watched>>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// How often the whole folder was looked at.
    pub(super) looks: u64,
    /// Files that were judged.
    pub(super) files: u64,
    /// Files that were met half written, beside their places.
    pub(super) half_written: u64,
    /// What was wrong, the first ones.
    pub(super) faults: Vec<String>,
}

impl Watch {
    /// Looks at a folder from now on.
    pub(super) fn begin(folder: &Path, clock: fn() -> DateTime<Utc>) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (told, folder) = (Arc::clone(&enough), folder.to_owned());
        let thread = thread::spawn(move || watch(&folder, clock, &told));
        Self { enough, thread: Some(thread) }
    }

    /// Ends it, and says what was seen.
    pub(super) fn end(mut self) -> Watched {
        self.enough.store(true, Ordering::Relaxed);
        let watched = self.thread.take().map(JoinHandle::join);
        let panicked =
            || Watched { faults: vec!["the watch panicked".to_owned()], ..Watched::default() };
        watched.and_then(Result::ok).unwrap_or_else(panicked)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
    }
}

fn watch(folder: &Path, clock: fn() -> DateTime<Utc>, enough: &AtomicBool) -> Watched {
    let mut watched = Watched::default();
    while !enough.load(Ordering::Relaxed) {
        let files = match look(folder) {
            Ok(files) => files,
            Err(error) => {
                watched.faults.push(format!("the folder can't be read: {error}"));
                return watched;
            }
        };
        let now = clock();
        watched.looks += 1;
        for file in files {
            watched.files += 1;
            watched.half_written += u64::from(file.is_temporary());
            if let Some(fault) = file.fault(now).filter(|_| watched.faults.len() < MOST) {
                watched.faults.push(format!("{}: {fault}", file.name));
            }
        }
        thread::sleep(PAUSE);
    }
    watched
}
