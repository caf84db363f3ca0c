use super::*;
use proptest::prelude::*;
use serde_json::value::RawValue;
use std::fs;

fn origin() -> Origin {
    Origin::parse("https://site.example").unwrap()
}

fn open(folder: &Path) -> Journal {
    Journal::open(folder, &origin()).unwrap()
}

fn command(seq: u64) -> Command {
    Command {
        command_id: format!("cmd_{seq}"),
        seq,
        kind: "test".to_owned(),
        run_id: None,
        not_after: None,
        voided: false,
        digest: digest(seq),
        created_at: chrono::DateTime::UNIX_EPOCH,
        body: RawValue::from_string("{}".to_owned()).unwrap(),
    }
}

fn digest(number: u64) -> Digest {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&number.to_be_bytes());
    Digest::from_bytes(bytes)
}

fn bytes(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("journal")).unwrap()
}

#[test]
fn a_command_is_followed_from_its_start_to_its_receipt_across_openings() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    assert_eq!(journal.cursor(), None);
    journal.begin_after(Cursor { seq: 6, chain_digest: digest(60) }).unwrap();
    assert_eq!(journal.start(&command(7)).unwrap(), 1);
    drop(journal);

    let mut journal = open(folder.path());
    assert_eq!(journal.cursor(), Some(Cursor { seq: 6, chain_digest: digest(60) }));
    assert_eq!(journal.start(&command(7)).unwrap(), 2);
    journal.finish(&command(7), "{\"exact\":  \"bytes\\n\"}").unwrap();
    drop(journal);

    let mut journal = open(folder.path());
    let entry = journal.entry("cmd_7").unwrap();
    assert_eq!((entry.tries, entry.seq, entry.digest), (2, 7, digest(7)));
    assert_eq!(entry.result.as_deref(), Some("{\"exact\":  \"bytes\\n\"}"));
    journal.receive(&command(7), digest(70)).unwrap();
    drop(journal);

    let journal = open(folder.path());
    assert_eq!(journal.cursor(), Some(Cursor { seq: 7, chain_digest: digest(70) }));
    assert_eq!(journal.entry("cmd_7"), None);
}

#[test]
fn a_second_agent_on_the_same_folder_is_refused_until_the_first_ends() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let refused = Journal::open(folder.path(), &origin());
    assert!(matches!(refused, Err(JournalError::InUse(_))));
    drop(first);
    open(folder.path());
}

#[test]
fn the_journal_of_another_site_api_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path());
    let other = Origin::parse("https://other.example").unwrap();
    let refused = Journal::open(folder.path(), &other);
    let Err(JournalError::OtherOrigin { found, expected }) = refused else {
        panic!("it is not refused as it should be");
    };
    assert_eq!((found.as_str(), expected.as_str()), (origin().as_str(), other.as_str()));
}

#[test]
fn a_damaged_line_before_the_last_is_refused_with_its_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.start(&command(1)).unwrap();
    journal.finish(&command(1), "1").unwrap();
    drop(journal);
    let good = bytes(folder.path());
    for (from, to, line) in [("started", "starred", 2), ("journal", "jornal!", 1)] {
        let text = String::from_utf8(good.clone()).unwrap().replacen(from, to, 1);
        fs::write(folder.path().join("journal"), text).unwrap();
        let refused = Journal::open(folder.path(), &origin());
        assert!(matches!(refused, Err(JournalError::Damaged { line: found, .. }) if found == line));
    }
}

#[test]
fn a_damaged_last_line_that_was_whole_is_refused_and_one_of_unwritten_pages_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.start(&command(1)).unwrap();
    drop(journal);
    let good = bytes(folder.path());
    let path = folder.path().join("journal");

    fs::write(&path, [&good, &b"{\"record\":\"nothing\"}\n"[..]].concat()).unwrap();
    let refused = Journal::open(folder.path(), &origin());
    assert!(matches!(refused, Err(JournalError::Damaged { line: 3, .. })));

    for tail in [&b"{\"rec\0\0\0\0\"}\n"[..], b"\0\0\0\0\0\0", b"{\"r\0\0\n\0\0\0"] {
        fs::write(&path, [&good, tail].concat()).unwrap();
        assert_eq!(open(folder.path()).entry("cmd_1").unwrap().tries, 1);
        assert_eq!(bytes(folder.path()), good);
    }
    fs::write(&path, [&good, &b"{\0}\n{}\n"[..]].concat()).unwrap();
    let refused = Journal::open(folder.path(), &origin());
    assert!(matches!(refused, Err(JournalError::Damaged { line: 3, .. })));
}

#[test]
fn the_file_stays_small_however_many_results_pass_through_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    let result = format!("\"{}\"", "x".repeat(100_000));
    let mut largest = 0;
    for seq in 1..=60 {
        journal.start(&command(seq)).unwrap();
        journal.finish(&command(seq), &result).unwrap();
        journal.receive(&command(seq), digest(seq)).unwrap();
        largest = largest.max(bytes(folder.path()).len());
    }
    assert!((1_000_000..1_300_000).contains(&largest), "{largest}");
    drop(journal);
    let journal = open(folder.path());
    assert_eq!(journal.cursor(), Some(Cursor { seq: 60, chain_digest: digest(60) }));
    assert!(bytes(folder.path()).len() < 300);
}

#[test]
fn what_is_written_after_a_compaction_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.finish(&command(1), &format!("\"{}\"", "x".repeat(1_200_000))).unwrap();
    journal.receive(&command(1), digest(1)).unwrap();
    journal.finish(&command(2), "2").unwrap();
    drop(journal);
    let journal = open(folder.path());
    assert_eq!(journal.cursor().unwrap().seq, 1);
    assert_eq!(journal.entry("cmd_2").unwrap().result.as_deref(), Some("2"));
}

#[test]
fn a_journal_that_can_not_be_compacted_goes_on_after_its_torn_line_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.start(&command(1)).unwrap();
    drop(journal);
    let good = bytes(folder.path());
    fs::write(folder.path().join("journal"), [&good, &b"{\"rec"[..]].concat()).unwrap();
    fs::create_dir(folder.path().join("journal.new")).unwrap();
    let mut journal = open(folder.path());
    assert_eq!(bytes(folder.path()), good);
    journal.finish(&command(1), "1").unwrap();
    drop(journal);
    assert_eq!(open(folder.path()).entry("cmd_1").unwrap().result.as_deref(), Some("1"));
}

/// Needs a process of its own, because it limits the size of every file that the process writes;
/// nextest gives each test one.
#[tokio::test]
async fn a_record_that_does_not_fit_on_the_disk_does_not_count_and_can_be_written_later() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    // With a handler for SIGXFSZ a write beyond the limit is cut short and then fails, as on a full
    // disk, and does not end the process.
    let file_too_large = tokio::signal::unix::SignalKind::from_raw(25);
    let _ignored = tokio::signal::unix::signal(file_too_large).unwrap();
    let limit = |bytes| {
        setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.start(&command(1)).unwrap();
    journal.start(&command(1)).unwrap();
    drop(journal);
    // Opened again, the file is shorter: what is cut off after a failure is counted from there.
    let mut journal = open(folder.path());
    let good = bytes(folder.path());

    limit(Some(good.len() as u64 + 10));
    journal.finish(&command(1), "\"result\"").unwrap_err();
    journal.finish(&command(1), "\"result\"").unwrap_err();
    assert_eq!(journal.entry("cmd_1").unwrap().result, None);
    assert_eq!(bytes(folder.path()).len(), good.len() + 10, "the disk was not full");

    limit(None);
    journal.finish(&command(1), "\"result\"").unwrap();
    journal.receive(&command(1), digest(1)).unwrap();
    drop(journal);
    let journal = open(folder.path());
    assert_eq!(journal.cursor(), Some(Cursor { seq: 1, chain_digest: digest(1) }));
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let seq = 1_u64..6;
    let record = prop_oneof![
        seq.clone().prop_map(|seq| Record::Cursor { seq, chain_digest: digest(seq * 100) }),
        (seq.clone(), 1_u32..4, 0_u64..2).prop_map(|(seq, try_number, other)| Record::Started {
            seq,
            command_id: format!("cmd_{seq}"),
            digest: digest(seq + other),
            try_number,
        }),
        (seq.clone(), "\\PC{0,20}").prop_map(|(seq, result)| Record::Finished {
            seq,
            command_id: format!("cmd_{seq}"),
            digest: digest(seq),
            result,
        }),
        seq.prop_map(|seq| Record::Received {
            seq,
            command_id: format!("cmd_{seq}"),
            chain_digest: digest(seq * 100),
        }),
    ];
    proptest::collection::vec(record, 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn replaying_any_cut_of_the_tail_gives_the_state_after_the_whole_lines(
        records in records(),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = open(folder.path());
        let header_length = bytes(folder.path()).len();
        // The length of the file after each record, and the state then.
        let mut states = vec![(header_length, State::default())];
        for record in records {
            journal.append(record).unwrap();
            states.push((bytes(folder.path()).len(), journal.state.clone()));
        }
        drop(journal);

        let whole = bytes(folder.path());
        let length = header_length + cut.index(whole.len() - header_length + 1);
        fs::write(folder.path().join("journal"), &whole[..length]).unwrap();
        let (_, expected) = states.iter().rfind(|(end, _)| *end <= length).unwrap();
        prop_assert_eq!(&open(folder.path()).state, expected);
        // The first opening has compacted the file: the second reads what that wrote.
        prop_assert_eq!(&open(folder.path()).state, expected);
    }

    #[test]
    fn the_fewest_records_add_up_to_the_same_state(records in records()) {
        let fold = |records: Vec<Record>| {
            let mut state = State::default();
            records.into_iter().for_each(|record| state.apply(record));
            state
        };
        let state = fold(records);
        prop_assert_eq!(fold(state.records()), state);
    }
}
