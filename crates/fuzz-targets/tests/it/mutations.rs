//! Each target with what is near its corpus: bytes exchanged, cut out, put in, and taken from another
//! file. A fuzzer does this better and longer; this does it with every run of the tests.

use std::fs;

use fuzz_targets::TARGETS;
use proptest::{prelude::*, sample::Index, test_runner::TestRunner};

use crate::corpus::files;

#[derive(Clone, Debug)]
enum Change {
    Exchange(Index, u8),
    Cut(Index, u8),
    PutIn(Index, Vec<u8>),
    /// The end of another file in place of ours.
    Splice(Index, Index, Index),
    Repeat(Index, u8),
}

fn change() -> impl Strategy<Value = Change> {
    let piece = prop_oneof![
        prop::sample::select(&PIECES[..]).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Exchange(at, byte)),
        (any::<Index>(), 1..20u8).prop_map(|(at, length)| Change::Cut(at, length)),
        (any::<Index>(), piece).prop_map(|(at, piece)| Change::PutIn(at, piece)),
        (any::<Index>(), any::<Index>(), any::<Index>())
            .prop_map(|(at, other, from)| Change::Splice(at, other, from)),
        (any::<Index>(), 1..20u8).prop_map(|(at, length)| Change::Repeat(at, length)),
    ]
}

/// What means something to one of the parsers.
const PIECES: [&[u8]; 24] = [
    b"*",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\0",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"0",
    b"-1",
    b"18446744073709551615",
    b"9223372036854775808",
    b"1e999",
    b"null",
    b"\\ud800",
    b"%00",
    b"#",
    b"\xff",
    b"\xc2\xa0",
];

fn changed(corpus: &[Vec<u8>], first: &Index, changes: &[Change]) -> Vec<u8> {
    let mut bytes = first.get(corpus).clone();
    for change in changes {
        let at = |index: &Index| index.index(bytes.len() + 1);
        match change {
            Change::Exchange(index, byte) => {
                let at = at(index);
                if let Some(place) = bytes.get_mut(at) {
                    *place = *byte;
                }
            }
            Change::Cut(index, length) => {
                let at = at(index);
                let end = (at + usize::from(*length)).min(bytes.len());
                bytes.drain(at..end);
            }
            Change::PutIn(index, piece) => {
                let at = at(index);
                bytes.splice(at..at, piece.iter().copied());
            }
            Change::Splice(index, other, from) => {
                let at = at(index);
                let other = other.get(corpus);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
            Change::Repeat(index, length) => {
                let at = at(index);
                let end = (at + usize::from(*length)).min(bytes.len());
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
        }
    }
    bytes
}

#[test]
fn what_is_near_the_corpus_holds_as_well() {
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 64,
        ..ProptestConfig::with_cases(400)
    };
    for target in TARGETS {
        let corpus: Vec<_> =
            files(target.name).iter().map(|file| fs::read(file).unwrap()).collect();
        let input = (any::<Index>(), prop::collection::vec(change(), 0..6));
        let run = TestRunner::new(config.clone()).run(&input, |(first, changes)| {
            let bytes = changed(&corpus, &first, &changes);
            std::panic::catch_unwind(|| (target.check)(&bytes)).map_err(|_| {
                TestCaseError::fail(format!(
                    "{}: {:?}",
                    target.name,
                    bytes.escape_ascii().to_string()
                ))
            })
        });
        assert!(run.is_ok(), "{}", run.unwrap_err());
    }
}
