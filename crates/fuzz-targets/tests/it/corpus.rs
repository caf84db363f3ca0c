//! fuzz/corpus: a folder for each target, and nothing that belongs to none.

use std::{
    collections::BTreeSet,
    fs,
    panic::catch_unwind,
    path::{Path, PathBuf},
};

use fuzz_targets::{TARGETS, takes};

/// The largest file of the corpus, in bytes, and the most files of a target.
const SMALL: u64 = 16 * 1024;
const FEW: usize = 400;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The files of a target's corpus, in the order of their names.
pub(crate) fn files(target: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("fuzz/corpus").join(target)).unwrap();
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    entries
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn every_target_has_a_corpus_and_a_program_and_nothing_is_without_a_target() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len(), "two targets have one name");
    assert_eq!(names("fuzz/corpus"), targets, "fuzz/corpus");
    assert_eq!(names("fuzz/fuzz_targets"), targets, "fuzz/fuzz_targets");
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let bins = manifest.split("[[bin]]").skip(1).map(|bin| bin.split('"').nth(1).unwrap());
    assert_eq!(bins.map(str::to_owned).collect::<BTreeSet<_>>(), targets, "fuzz/Cargo.toml");
    for name in &targets {
        let program = root().join(format!("fuzz/fuzz_targets/{name}.rs"));
        let calls = format!("fuzz_targets::check(\"{name}\", bytes)");
        assert!(fs::read_to_string(program).unwrap().contains(&calls), "{name} checks another");
        let corpus = files(name);
        assert!((1..=FEW).contains(&corpus.len()), "{name}: {} files", corpus.len());
        for file in corpus {
            assert!(fs::metadata(&file).unwrap().len() <= SMALL, "{} is large", file.display());
        }
    }
}

#[test]
fn every_target_takes_a_file_of_its_corpus() {
    let takes = |name: &str| files(name).iter().any(|file| takes(name, &fs::read(file).unwrap()));
    let idle: Vec<_> = TARGETS.iter().map(|target| target.name).filter(|n| !takes(n)).collect();
    assert!(idle.is_empty(), "{idle:?} refuse all that they are given");
}

#[test]
fn the_corpus_holds() {
    let mut failed = Vec::new();
    for target in TARGETS {
        for file in files(target.name) {
            let bytes = fs::read(&file).unwrap();
            if catch_unwind(|| (target.check)(&bytes)).is_err() {
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
