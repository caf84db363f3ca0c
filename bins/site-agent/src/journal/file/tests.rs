//! What is on disk when: each synchronisation notes what it finds in the folder.

use super::*;
use site_protocol::Digest;
use std::sync::{Arc, Mutex};

use Written::{Names, NewFile, Records};

/// What was synchronised, and how many lines `journal` and `journal.new` had just then; none where
/// there was no such file.
type Synced = (Written, Option<usize>, Option<usize>);

const KEEP: Keep = Keep { results: 0, result_bytes: 0, output_bytes: 0 };

struct Bench {
    folder: tempfile::TempDir,
    synced: Arc<Mutex<Vec<Synced>>>,
    /// What fails instead.
    failing: Arc<Mutex<Option<Written>>>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, synced: Arc::default(), failing: Arc::default() }
    }

    fn open(&self) -> (JournalFile, State) {
        let folder = self.folder.path().to_owned();
        let (synced, failing) = (self.synced.clone(), self.failing.clone());
        let sync = move |written, _: &File| {
            if *failing.lock().unwrap() == Some(written) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let lines = |name| Some(fs::read_to_string(folder.join(name)).ok()?.lines().count());
            let seen = (written, lines("journal"), lines("journal.new"));
            synced.lock().unwrap().push(seen);
            Ok(())
        };
        let origin = Origin::parse("https://site.example").unwrap();
        JournalFile::open_with(self.folder.path(), &origin, KEEP, Box::new(sync)).unwrap()
    }

    /// What was synchronised since the last call.
    fn synced(&self) -> Vec<Synced> {
        std::mem::take(&mut self.synced.lock().unwrap())
    }

    fn fail(&self, written: Option<Written>) {
        *self.failing.lock().unwrap() = written;
    }
}

fn cursor(seq: u64) -> Record {
    Record::Cursor { seq, chain_digest: Digest::ZERO }
}

#[test]
fn a_record_and_the_files_name_are_on_disk_before_it_counts() {
    let bench = Bench::new();
    let (mut journal, _) = bench.open();
    assert_eq!(bench.synced(), [(NewFile, None, Some(1))]);
    journal.append(&cursor(1)).unwrap();
    assert_eq!(bench.synced(), [(Names, Some(1), None), (Records, Some(2), None)]);
    journal.append(&cursor(2)).unwrap();
    assert_eq!(bench.synced(), [(Records, Some(3), None)]);
}

#[test]
fn what_an_opening_reads_is_on_disk_before_it_counts() {
    let bench = Bench::new();
    let (mut journal, _) = bench.open();
    journal.append(&cursor(1)).unwrap();
    journal.append(&cursor(2)).unwrap();
    drop(journal);
    bench.synced();
    // The two cursors are one in the new file.
    let (mut journal, _) = bench.open();
    assert_eq!(bench.synced(), [(Records, Some(3), None), (NewFile, Some(3), Some(2))]);
    journal.append(&cursor(3)).unwrap();
    assert_eq!(bench.synced(), [(Names, Some(2), None), (Records, Some(3), None)]);
}

#[test]
fn a_compacted_file_is_on_disk_before_it_takes_the_place_of_the_old_one() {
    let bench = Bench::new();
    let (mut journal, _) = bench.open();
    let mut state = State::new(KEEP);
    let mut add = |journal: &mut JournalFile, record: Record| {
        journal.append(&record).unwrap();
        state.apply(record);
        bench.synced();
        journal.compact_when_large(&state);
    };
    let result = |result| Record::Finished {
        seq: 1,
        command_id: "cmd_1".to_owned(),
        digest: Digest::ZERO,
        result,
        output: None,
    };
    add(&mut journal, cursor(0));
    assert_eq!(bench.synced(), []);
    add(&mut journal, result("x".repeat(1_100_000)));
    assert!(matches!(bench.synced()[..], [(NewFile, Some(3), Some(_))]));
    journal.append(&cursor(1)).unwrap();
    assert!(matches!(bench.synced()[..], [(Names, ..), (Records, ..)]));
}

#[test]
fn a_record_that_is_not_synchronised_does_not_count() {
    for failing in [Names, Records] {
        let bench = Bench::new();
        let (mut journal, _) = bench.open();
        bench.fail(Some(failing));
        journal.append(&cursor(1)).unwrap_err();
        journal.append(&cursor(1)).unwrap_err();
        bench.fail(None);
        journal.append(&cursor(2)).unwrap();
        let lines = fs::read_to_string(bench.folder.path().join("journal")).unwrap();
        assert_eq!(lines.lines().count(), 2, "{failing:?}: {lines}");
        drop(journal);
        assert_eq!(bench.open().1.cursor.unwrap().seq, 2, "{failing:?}");
    }
}
