//! Results after their receipts, and their private outputs.

use super::*;

#[test]
fn the_oldest_results_go_first_by_number_by_room_and_by_the_room_of_their_outputs() {
    let few = Keep { results: 2, ..KEEP };
    let small = Keep { result_bytes: 20, ..KEEP };
    let small_outputs = Keep { output_bytes: 20, ..KEEP };
    for keep in [few, small, small_outputs] {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = open_keeping(folder.path(), keep);
        let mut outputs = Vec::new();
        for seq in 1..=4 {
            let output = journal.keep_output(format!("output {seq:03}").as_bytes()).unwrap();
            outputs.push(output);
            journal.finish(&command(seq), "\"12345678\"", Some(output)).unwrap();
            journal.receive(&command(seq), digest(seq)).unwrap();
        }
        for _ in 0..2 {
            let kept = (1..=4).filter(|seq| journal.entry(&format!("cmd_{seq}")).is_some());
            assert_eq!(kept.collect::<Vec<_>>(), [3, 4], "{keep:?}");
            assert_eq!(journal.output(outputs[2]).unwrap(), b"output 003");
            assert!(journal.output(outputs[1]).is_err(), "it goes with its result");
            drop(journal);
            journal = open_keeping(folder.path(), keep);
        }
    }
}

#[test]
fn one_that_is_received_again_keeps_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open_keeping(folder.path(), Keep { results: 2, ..KEEP });
    for seq in [1, 2] {
        journal.finish(&command(seq), "1", None).unwrap();
        journal.receive(&command(seq), digest(seq)).unwrap();
    }
    // An older database was restored, and the journal's place goes back with it.
    journal.begin_after(Cursor { seq: 0, chain_digest: Digest::ZERO }).unwrap();
    journal.receive(&command(1), digest(1)).unwrap();
    journal.finish(&command(3), "3", None).unwrap();
    journal.receive(&command(3), digest(3)).unwrap();
    let kept = (1..=3).filter(|seq| journal.entry(&format!("cmd_{seq}")).is_some());
    assert_eq!(kept.collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn an_output_stays_while_any_result_names_it_and_goes_at_the_next_start_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let keep = Keep { results: 1, ..KEEP };
    let mut journal = open_keeping(folder.path(), keep);
    let shared = journal.keep_output(b"shared").unwrap();
    for seq in [1, 2] {
        journal.finish(&command(seq), "1", Some(shared)).unwrap();
        journal.receive(&command(seq), digest(seq)).unwrap();
    }
    assert_eq!(journal.output(shared).unwrap(), b"shared");
    let unnamed = journal.keep_output(b"the agent is killed before a result names it").unwrap();
    drop(journal);
    let journal = open_keeping(folder.path(), keep);
    assert_eq!(journal.output(shared).unwrap(), b"shared");
    assert!(journal.output(unnamed).is_err());
    let path = folder.path().join("outputs").join(shared.digest.to_string());
    fs::write(path, "changed").unwrap();
    assert!(journal.output(shared).is_err(), "it is not what the result names");
}
