mod kept;

use super::*;
use proptest::prelude::*;
use serde_json::value::RawValue;
use std::fs;

fn origin() -> Origin {
    Origin::parse("https://site.example").unwrap()
}

const KEEP: Keep = Keep { results: 10_000, result_bytes: 1 << 26, output_bytes: 1 << 26 };

fn open(folder: &Path) -> Journal {
    open_keeping(folder, KEEP)
}

fn open_keeping(folder: &Path, keep: Keep) -> Journal {
    Journal::open(folder, &origin(), keep).unwrap()
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
    journal.finish(&command(7), "{\"exact\":  \"bytes\\n\"}", None).unwrap();
    drop(journal);

    let mut journal = open(folder.path());
    let entry = journal.entry("cmd_7").unwrap();
    assert_eq!((entry.tries, entry.seq, entry.digest), (2, 7, digest(7)));
    assert_eq!(entry.result.as_deref(), Some("{\"exact\":  \"bytes\\n\"}"));
    journal.receive(&command(7), digest(70)).unwrap();
    drop(journal);

    let journal = open(folder.path());
    assert_eq!(journal.cursor(), Some(Cursor { seq: 7, chain_digest: digest(70) }));
    let entry = journal.entry("cmd_7").unwrap();
    assert_eq!((entry.tries, entry.digest), (2, digest(7)));
    assert_eq!(entry.result.as_deref(), Some("{\"exact\":  \"bytes\\n\"}"));
    assert!(!journal.has_try_without_result());
}

#[test]
fn a_second_agent_on_the_same_folder_is_refused_until_the_first_ends() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let refused = Journal::open(folder.path(), &origin(), KEEP);
    assert!(matches!(refused, Err(JournalError::InUse(_))));
    drop(first);
    open(folder.path());
}

#[test]
fn the_journal_of_another_site_api_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    open(folder.path());
    let other = Origin::parse("https://other.example").unwrap();
    let refused = Journal::open(folder.path(), &other, KEEP);
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
    journal.finish(&command(1), "1", None).unwrap();
    drop(journal);
    let good = bytes(folder.path());
    for (from, to, line) in [("started", "starred", 2), ("journal", "jornal!", 1)] {
        let text = String::from_utf8(good.clone()).unwrap().replacen(from, to, 1);
        fs::write(folder.path().join("journal"), text).unwrap();
        let refused = Journal::open(folder.path(), &origin(), KEEP);
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
    let refused = Journal::open(folder.path(), &origin(), KEEP);
    assert!(matches!(refused, Err(JournalError::Damaged { line: 3, .. })));

    for tail in [&b"{\"rec\0\0\0\0\"}\n"[..], b"\0\0\0\0\0\0", b"{\"r\0\0\n\0\0\0"] {
        fs::write(&path, [&good, tail].concat()).unwrap();
        assert_eq!(open(folder.path()).entry("cmd_1").unwrap().tries, 1);
        assert_eq!(bytes(folder.path()), good);
    }
    fs::write(&path, [&good, &b"{\0}\n{}\n"[..]].concat()).unwrap();
    let refused = Journal::open(folder.path(), &origin(), KEEP);
    assert!(matches!(refused, Err(JournalError::Damaged { line: 3, .. })));
}

#[test]
fn the_file_stays_small_however_many_results_pass_through_it() {
    let folder = tempfile::tempdir().unwrap();
    // Of the results of 100 kB three are kept.
    let keep = Keep { result_bytes: 350_000, ..KEEP };
    let mut journal = open_keeping(folder.path(), keep);
    let result = format!("\"{}\"", "x".repeat(100_000));
    let (mut largest, mut compactions, mut length) = (0, 0, 0);
    for seq in 1..=60 {
        journal.start(&command(seq)).unwrap();
        journal.finish(&command(seq), &result, None).unwrap();
        journal.receive(&command(seq), digest(seq)).unwrap();
        let before = std::mem::replace(&mut length, bytes(folder.path()).len());
        compactions += usize::from(length < before);
        largest = largest.max(length);
    }
    // Twice what is kept, and 1 MiB.
    assert!((1_500_000..1_900_000).contains(&largest), "{largest}");
    assert!((3..=6).contains(&compactions), "what is kept was written {compactions} times");
    drop(journal);
    let journal = open_keeping(folder.path(), keep);
    assert_eq!(journal.cursor(), Some(Cursor { seq: 60, chain_digest: digest(60) }));
    let kept = (1..=60).filter(|seq| journal.entry(&format!("cmd_{seq}")).is_some());
    assert_eq!(kept.collect::<Vec<_>>(), [58, 59, 60]);
    assert!(bytes(folder.path()).len() < 302_000);
}

#[test]
fn a_try_goes_on_counting_where_its_command_has_moved_to_another_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.start(&command(3)).unwrap();
    let moved = Command { seq: 5, ..command(3) };
    assert_eq!(journal.start(&moved).unwrap(), 2);
    let changed = Command { digest: digest(9), ..command(3) };
    assert_eq!(journal.start(&changed).unwrap(), 1);
}

#[test]
fn the_generation_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    assert_eq!(journal.generation(), None);
    journal.adopt(7).unwrap();
    drop(journal);
    assert_eq!(open(folder.path()).generation(), Some(7));
}

#[test]
fn a_journal_of_the_release_without_sessions_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let (zero, one) = (Digest::ZERO, digest(1));
    let text = format!(
        "{{\"journal\":1,\"origin\":\"{}\"}}\n\
         {{\"record\":\"cursor\",\"seq\":0,\"chainDigest\":\"{zero}\"}}\n\
         {{\"record\":\"started\",\"seq\":1,\"commandId\":\"cmd_1\",\"digest\":\"{one}\",\"try\":2}}\n\
         {{\"record\":\"finished\",\"seq\":1,\"commandId\":\"cmd_1\",\"digest\":\"{one}\",\"result\":\"1\"}}\n\
         {{\"record\":\"received\",\"seq\":1,\"commandId\":\"cmd_1\",\"chainDigest\":\"{one}\"}}\n",
        origin()
    );
    fs::write(folder.path().join("journal"), text).unwrap();
    let journal = open(folder.path());
    assert_eq!(journal.cursor(), Some(Cursor { seq: 1, chain_digest: one }));
    let entry = journal.entry("cmd_1").unwrap();
    assert_eq!((entry.tries, entry.result.as_deref(), entry.output), (2, Some("1"), None));
}

#[test]
fn what_is_written_after_a_compaction_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path());
    journal.finish(&command(1), &format!("\"{}\"", "x".repeat(1_200_000)), None).unwrap();
    journal.receive(&command(1), digest(1)).unwrap();
    journal.finish(&command(2), "2", None).unwrap();
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
    journal.finish(&command(1), "1", None).unwrap();
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
    journal.finish(&command(1), "\"result\"", None).unwrap_err();
    journal.finish(&command(1), "\"result\"", None).unwrap_err();
    assert_eq!(journal.entry("cmd_1").unwrap().result, None);
    assert_eq!(bytes(folder.path()).len(), good.len() + 10, "the disk was not full");

    limit(None);
    journal.finish(&command(1), "\"result\"", None).unwrap();
    journal.receive(&command(1), digest(1)).unwrap();
    drop(journal);
    let journal = open(folder.path());
    assert_eq!(journal.cursor(), Some(Cursor { seq: 1, chain_digest: digest(1) }));
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let seq = 1_u64..6;
    let output = proptest::option::of(1_u64..4);
    let output = output.prop_map(|number| {
        number.map(|number| OutputNote { digest: digest(number), bytes: number * 3 })
    });
    let record = prop_oneof![
        (1_u64..9).prop_map(|generation| Record::Generation { generation }),
        seq.clone().prop_map(|seq| Record::Cursor { seq, chain_digest: digest(seq * 100) }),
        (seq.clone(), 1_u32..4, 0_u64..2).prop_map(|(seq, try_number, other)| Record::Started {
            seq,
            command_id: format!("cmd_{seq}"),
            digest: digest(seq + other),
            try_number,
        }),
        (seq.clone(), "\\PC{0,20}", output).prop_map(|(seq, result, output)| Record::Finished {
            seq,
            command_id: format!("cmd_{seq}"),
            digest: digest(seq),
            result,
            output,
        }),
        seq.prop_map(|seq| Record::Received {
            seq,
            command_id: format!("cmd_{seq}"),
            chain_digest: digest(seq * 100),
        }),
    ];
    proptest::collection::vec(record, 0..16)
}

/// Bounds that the records above meet.
const TIGHT: Keep = Keep { results: 3, result_bytes: 60, output_bytes: 15 };

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn replaying_any_cut_of_the_tail_gives_the_state_after_the_whole_lines(
        records in records(),
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = open_keeping(folder.path(), TIGHT);
        let header_length = bytes(folder.path()).len();
        // The length of the file after each record, and the state then.
        let mut states = vec![(header_length, State::new(TIGHT))];
        for record in records {
            journal.append(record).unwrap();
            let bounds = &journal.state.kept;
            prop_assert!(bounds.entries().count() <= TIGHT.results);
            states.push((bytes(folder.path()).len(), journal.state.clone()));
        }
        drop(journal);

        let whole = bytes(folder.path());
        let length = header_length + cut.index(whole.len() - header_length + 1);
        fs::write(folder.path().join("journal"), &whole[..length]).unwrap();
        let (_, expected) = states.iter().rfind(|(end, _)| *end <= length).unwrap();
        prop_assert_eq!(&open_keeping(folder.path(), TIGHT).state, expected);
        // The first opening has compacted the file: the second reads what that wrote.
        prop_assert_eq!(&open_keeping(folder.path(), TIGHT).state, expected);
    }

    #[test]
    fn the_fewest_records_add_up_to_the_same_state(records in records()) {
        let fold = |records: Vec<Record>| {
            let mut state = State::new(TIGHT);
            records.into_iter().for_each(|record| drop(state.apply(record)));
            state
        };
        let state = fold(records);
        prop_assert_eq!(fold(state.records().collect()), state);
    }
}
