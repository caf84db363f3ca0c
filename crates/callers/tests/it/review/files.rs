//! Our reviewer's own token and the cluster's CA, as their files change.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use callers::review::OpenError;
use https_client::{RootsError, TokenFileError};
use test_support::{TestCa, eventually};

use super::*;

#[tokio::test]
async fn a_rotated_token_of_the_reviewer_is_used_at_once_and_kept_while_its_file_is_unusable() {
    let world = World::answering(refused).await;
    for (file, used) in [("second \n", "second"), ("", "second"), ("third", "third")] {
        std::fs::write(world.token_file(), file).unwrap();
        assert!(world.review(&token("a")).await.is_err());
        let sent = world.peer.received().last().unwrap().headers["authorization"].clone();
        assert_eq!(sent, format!("Bearer {used}"));
    }
    std::fs::remove_file(world.folder.path().join("token")).unwrap();
    assert!(world.review(&token("a")).await.is_err());
    assert_eq!(world.peer.received().last().unwrap().headers["authorization"], "Bearer third");
}

#[tokio::test]
async fn a_token_of_the_reviewer_that_is_not_known_is_read_at_once_and_tried_once_more() {
    let (path, told) = std::sync::mpsc::channel::<PathBuf>();
    let mut file = None;
    let world = World::answering(move |request| {
        if request.headers["authorization"] == "Bearer rotated" {
            return accepted(request);
        }
        // It was renewed after the reviewer had read it.
        let file = file.get_or_insert_with(|| told.recv().unwrap());
        fs::write(file, "rotated").unwrap();
        Reply::json(401, r#"{"kind":"Status"}"#)
    })
    .await;
    path.send(world.token_file()).unwrap();
    world.review(&token("a")).await.unwrap();
    assert_eq!(world.peer.received().len(), 2);
}

#[tokio::test]
async fn a_token_of_the_reviewer_that_stays_unknown_is_tried_twice_and_is_trouble() {
    let world = World::with(Reply::json(401, "{}")).await;
    let error = world.review(&token("a")).await.unwrap_err();
    assert!(matches!(error, ReviewError::Trouble(ReviewTrouble::ReviewerUnknown)), "{error:?}");
    assert_eq!(world.peer.received().len(), 2);
    // Of another status nothing is to be hoped.
    let world = World::with(Reply::json(403, "{}")).await;
    assert!(world.review(&token("a")).await.is_err());
    assert_eq!(world.peer.received().len(), 1);
}

#[tokio::test]
async fn another_ca_is_taken_up_and_an_unusable_one_is_not() {
    let world = World::answering(refused).await;
    let ours = fs::read(&world.settings.ca_file).unwrap();
    let is_refused = async || {
        let error = world.review(&token("a")).await.unwrap_err();
        matches!(error, ReviewError::Refused(_))
    };
    assert!(is_refused().await);
    // No connection of the old one is used.
    TestCa::new().write_to(&world.settings.ca_file).unwrap();
    let error = world.review(&token("a")).await.unwrap_err();
    assert!(format!("{error:?}").contains("Untrusted"), "{error:?}");
    fs::write(&world.settings.ca_file, &ours).unwrap();
    assert!(is_refused().await);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for unusable in ["", "nothing", broken] {
        fs::write(&world.settings.ca_file, unusable).unwrap();
        assert!(is_refused().await, "{unusable}");
    }
    fs::remove_file(&world.settings.ca_file).unwrap();
    assert!(is_refused().await);
}

#[tokio::test]
async fn a_swap_of_a_link_changes_both() {
    let world = World::answering(refused).await;
    let folder = world.folder.path();
    let version = |name: &str, token: &str| {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("token"), token).unwrap();
        fs::copy(&world.settings.ca_file, folder.join(name).join("ca.crt")).unwrap();
    };
    let point_to = |name: &str| {
        std::os::unix::fs::symlink(name, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    };
    version("1", "first");
    point_to("1");
    let reviewer = world.reviewer_with(|settings| {
        settings.token_file = folder.join("..data/token");
        settings.ca_file = folder.join("..data/ca.crt");
    });
    version("2", "second");
    for (name, sent) in [("1", "Bearer first"), ("2", "Bearer second")] {
        point_to(name);
        assert!(reviewer.review(&token("a")).await.is_err());
        assert_eq!(world.peer.received().last().unwrap().headers["authorization"], sent);
    }
}

#[tokio::test]
async fn a_file_system_that_hangs_costs_a_part_of_the_budget_and_one_thread() {
    let world = World::answering(refused).await;
    let budget = Duration::from_secs(4);
    let reviewer = world.reviewer_with(|settings| settings.budget = budget);
    let pipe = Pipe::of(world.folder.path());
    fs::rename(&pipe.moved, world.token_file()).unwrap();
    let before = threads();
    let begun = std::time::Instant::now();
    // The next ones wait for the reading that hangs, and no longer than for one of their own.
    let tokens: Vec<_> = (0..4).map(|number| token(&number.to_string())).collect();
    let reviews = tokens.iter().map(|token| reviewer.review(token));
    for error in futures_util::future::join_all(reviews).await {
        assert!(matches!(error, Err(ReviewError::Refused(_))), "{error:?}");
    }
    let took = begun.elapsed();
    assert!(budget / 4 <= took && took < budget, "{took:?}");
    let sent = |request: &test_support::Received| request.headers["authorization"].clone();
    let known = format!("Bearer {REVIEWER}");
    assert!(world.peer.received().iter().all(|request| sent(request) == known));
    assert!(threads() <= before + 1, "{before} threads, then {}", threads());
    // It answers, with nothing, and is whole again.
    drop(pipe);
    fs::write(world.folder.path().join("new"), "new").unwrap();
    fs::rename(world.folder.path().join("new"), world.token_file()).unwrap();
    eventually(Duration::from_secs(10), "the new token", async || {
        assert!(reviewer.review(&token("a")).await.is_err());
        (sent(world.peer.received().last()?) == "Bearer new").then_some(())
    })
    .await;
}

#[tokio::test]
async fn all_that_can_take_time_takes_no_more_than_the_budget_after_its_place() {
    let (budget, waited) = (Duration::from_secs(2), Duration::from_millis(900));
    let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let held = std::sync::Arc::clone(&permits);
    let unknown = b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n".to_vec();
    let mut unknown = Some(Reply::Drip(unknown, Duration::from_millis(10)));
    let world = World::answering(move |request| {
        if is_about(request, "before") {
            return Reply::Held(held.clone(), Box::new(refused(request)));
        }
        unknown.take().unwrap_or(Reply::Silence)
    })
    .await;
    let reviewer = world.reviewer_with(|settings| {
        settings.budget = budget;
        // One of them is for strangers.
        settings.in_flight = 3;
    });
    let (before, after) = (strangers_token("before"), strangers_token("after"));
    let before = tokio::spawn({
        let reviewer = reviewer.clone();
        async move { reviewer.review(&before).await }
    });
    world.until_asked(1).await;
    let pipe = Pipe::of(world.folder.path());
    fs::rename(&pipe.moved, world.token_file()).unwrap();
    let begun = std::time::Instant::now();
    let release = async {
        tokio::time::sleep(waited).await;
        permits.add_permits(1);
    };
    let (late, ()) = tokio::join!(reviewer.review(&after), release);
    let took = begun.elapsed();
    assert!(matches!(late, Err(ReviewError::Trouble(ReviewTrouble::TooLate))), "{late:?}");
    assert!(waited + budget <= took && took < budget * 3 / 2 + budget / 2, "{took:?}");
    assert_eq!(world.asked().len(), 3, "the place, then twice");
    assert!(matches!(before.await.unwrap(), Err(ReviewError::Refused(_))));
}

/// A pipe in place of a file. Who opens it waits, but no longer than for the end of this value: a
/// thread that hangs would keep a test that failed from its end.
struct Pipe {
    moved: PathBuf,
    kept: PathBuf,
}

impl Pipe {
    fn of(folder: &Path) -> Self {
        let (moved, kept) = (folder.join("pipe"), folder.join("the-same-pipe"));
        assert!(Command::new("mkfifo").arg(&moved).status().unwrap().success());
        fs::hard_link(&moved, &kept).unwrap();
        Self { moved, kept }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // For both directions it can be opened at once. So can it then by everybody who waits for it,
        // who finds its end when this is closed.
        let _opened = fs::OpenOptions::new().read(true).write(true).open(&self.kept);
    }
}

/// The threads of this process.
fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

#[tokio::test]
async fn without_its_files_there_is_no_reviewer() {
    let world = World::answering(accepted).await;
    let open = |change: fn(&mut ReviewerSettings)| {
        let mut settings = world.settings.clone();
        change(&mut settings);
        Reviewer::open(settings, &random(), now).err()
    };
    fn gone(file: &mut PathBuf) {
        file.set_extension("gone");
    }
    assert!(open(|_| ()).is_none());
    let error = open(|settings| gone(&mut settings.token_file));
    assert!(matches!(error, Some(OpenError::Token(TokenFileError::Read(_)))), "{error:?}");
    let error = open(|settings| gone(&mut settings.ca_file));
    assert!(matches!(error, Some(OpenError::Ca(RootsError::Read(_)))), "{error:?}");
    fs::write(world.token_file(), "two words").unwrap();
    let error = open(|_| ());
    assert!(matches!(error, Some(OpenError::Token(TokenFileError::NotVisibleAscii))), "{error:?}");
}
