use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use callers::{Grant, Grants, IssueError, NativeBearer, Principal, StoreError, issue};
use chrono::{DateTime, TimeDelta, Utc};

use crate::support::{agent, at, bearer, file, now, random, row, runtime};

const DAY: Duration = Duration::from_secs(86_400);

/// A bearer as it was handed over, and its grant.
#[derive(Debug)]
struct Issued {
    bearer: NativeBearer,
    grant: Grant,
}

fn issue_for(path: &Path, principal: Principal) -> Result<Issued, IssueError> {
    issue_at(path, principal, now())
}

fn issue_at(path: &Path, principal: Principal, at: DateTime<Utc>) -> Result<Issued, IssueError> {
    let mut handed = None;
    let grant = issue(path, principal, DAY, at, &random(), |bearer, _| {
        handed = Some(bearer);
        Ok::<_, IssueError>(())
    })?;
    Ok(Issued { bearer: handed.unwrap(), grant })
}

fn read(path: &Path) -> Grants {
    Grants::parse(&fs::read_to_string(path).unwrap(), now()).unwrap()
}

/// The names of the files in a folder, in order.
fn left(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_issued_bearer_is_let_in_until_its_life_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let issued = issue_for(&path, runtime("hpc-1")).unwrap();

    let grants = read(&path);
    let grant = grants.authenticate(&issued.bearer, now()).unwrap();
    assert_eq!(grant, &issued.grant);
    assert_eq!(grant.principal(), &runtime("hpc-1"));
    assert_eq!(grant.issued_at(), now());
    assert_eq!(grant.expires_at(), at("2030-01-16T12:00:00Z"));
    assert!(grants.authenticate(&issued.bearer, now() + TimeDelta::days(1)).is_err());
}

#[test]
fn the_file_holds_the_digest_and_not_the_secret_and_is_the_owners() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let issued = issue_for(&path, runtime("hpc-1")).unwrap();
    let secret = issued.bearer.expose().split('.').nth(1).unwrap();
    assert!(!fs::read_to_string(&path).unwrap().contains(secret));
    assert!(!format!("{issued:?}").contains(secret));
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_second_grant_keeps_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let first = bearer();
    fs::write(&path, file(&[row(&first)])).unwrap();

    let second = issue_for(&path, agent("hpc-1")).unwrap();
    let grants = read(&path);
    assert_eq!(grants.iter().count(), 2);
    assert!(grants.authenticate(&first, now()).is_ok());
    assert!(grants.authenticate(&second.bearer, now()).is_ok());
}

#[test]
fn who_could_read_the_file_before_a_change_can_read_it_after() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    issue_for(&path, runtime("hpc-1")).unwrap();
    // Only root may give a file away; of whom else it is is kept all the same.
    let given = if fs::metadata(&path).unwrap().uid() == 0 { Some(4321) } else { None };
    chown(&path, given, given).unwrap();
    for (site, mode) in [("a", 0o640), ("b", 0o644), ("c", 0o600)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let seen = || {
            let file = fs::metadata(&path).unwrap();
            (file.uid(), file.gid(), file.mode() & 0o7777, file.ino())
        };
        let before = seen();
        issue_for(&path, runtime(site)).unwrap();
        let after = seen();
        assert_eq!((before.0, before.1, before.2), (after.0, after.1, after.2));
        assert_ne!(before.3, after.3, "it is another file");
    }
}

#[test]
fn a_link_stays_and_its_target_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target"), folder.path().join("link"));
    issue_for(&target, runtime("hpc-1")).unwrap();
    symlink("target", &link).unwrap();
    let second = issue_for(&link, agent("hpc-1")).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("target"));
    assert!(read(&target).authenticate(&second.bearer, now()).is_ok());
    assert_eq!(left(folder.path()), ["link", "target", "target.lock"], "one lock for both names");

    fs::remove_file(&target).unwrap();
    let refused = issue_for(&link, runtime("hpc-1")).unwrap_err();
    assert!(matches!(refused, IssueError::Store(StoreError::Read { .. })), "{refused:?}");
}

#[test]
fn a_bearer_that_is_not_handed_over_has_no_grant() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let lost = |at: &Path| {
        issue(at, runtime("hpc-1"), DAY, now(), &random(), |_, _| Err(IssueError::Random))
    };
    assert!(matches!(lost(&path), Err(IssueError::Random)));
    assert_eq!(left(folder.path()), ["grants.json.lock"]);

    issue_for(&path, agent("hpc-1")).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(lost(&path), Err(IssueError::Random)));
    assert_eq!(fs::read(&path).unwrap(), before);
    issue_for(&path, runtime("hpc-1")).unwrap();
    assert_eq!(left(folder.path()), ["grants.json", "grants.json.lock"]);
}

#[test]
fn a_bearer_is_handed_over_before_its_grant_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    issue(&path, runtime("hpc-1"), DAY, now(), &random(), |_, _| {
        assert!(!path.exists());
        Ok::<_, IssueError>(())
    })
    .unwrap();
    assert!(path.exists());
}

#[test]
fn a_principal_with_an_active_grant_gets_no_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let first = issue_for(&path, runtime("hpc-1")).unwrap();
    let before = fs::read(&path).unwrap();
    let refused = issue_for(&path, runtime("hpc-1")).unwrap_err();
    let IssueError::AlreadyActive { principal, id, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!((principal.as_str(), id), ("commands@hpc-1", first.bearer.id()));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_expired_grant_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    issue_for(&path, runtime("hpc-1")).unwrap();
    let later = now() + TimeDelta::days(1);
    let second = issue_at(&path, runtime("hpc-1"), later).unwrap();
    let grants = Grants::parse(&fs::read_to_string(&path).unwrap(), later).unwrap();
    assert!(grants.authenticate(&second.bearer, later).is_ok());
    assert_eq!(grants.iter().count(), 2);
}

#[test]
fn an_invalid_file_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    for text in ["", "{}", &file(&[row(&bearer()), row(&bearer())])] {
        fs::write(&path, text).unwrap();
        let refused = issue_for(&path, agent("hpc-1")).unwrap_err();
        assert!(matches!(refused, IssueError::Store(StoreError::Invalid { .. })), "{refused:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn a_life_without_a_second_or_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    for life in [Duration::ZERO, Duration::from_millis(999), Duration::MAX] {
        let refused = issue(&path, runtime("hpc-1"), life, now(), &random(), |_, _| Ok(()));
        assert!(matches!(refused, Err(IssueError::Life(_))), "{life:?}");
    }
    assert!(!path.exists());
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none").join("grants.json");
    let refused = issue_for(&path, runtime("hpc-1")).unwrap_err();
    assert!(matches!(refused, IssueError::Store(StoreError::Lock { .. })), "{refused:?}");
}

#[test]
fn nothing_but_the_file_and_its_lock_is_left() {
    let folder = tempfile::tempdir().unwrap();
    issue_for(&folder.path().join("grants.json"), runtime("hpc-1")).unwrap();
    assert_eq!(left(folder.path()), ["grants.json", "grants.json.lock"]);
}

#[test]
fn of_thirty_two_issuers_at_once_none_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path: Arc<Path> = folder.path().join("grants.json").into();
    let barrier = Arc::new(Barrier::new(32));
    let issuers: Vec<_> = (0..32)
        .map(|number| {
            let (path, barrier) = (Arc::clone(&path), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                issue_for(&path, runtime(&format!("site-{number}"))).unwrap().bearer
            })
        })
        .collect();
    let bearers: Vec<_> = issuers.into_iter().map(|issuer| issuer.join().unwrap()).collect();
    let grants = read(&path);
    for bearer in &bearers {
        assert!(grants.authenticate(bearer, now()).is_ok());
    }
    assert_eq!(grants.iter().count(), 32);
}

#[test]
fn of_thirty_two_issuers_for_one_principal_one_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path: Arc<Path> = folder.path().join("grants.json").into();
    let barrier = Arc::new(Barrier::new(32));
    let issuers: Vec<_> = (0..32)
        .map(|_| {
            let (path, barrier) = (Arc::clone(&path), Arc::clone(&barrier));
            thread::spawn(move || {
                barrier.wait();
                issue_for(&path, runtime("hpc-1"))
            })
        })
        .collect();
    let won: Vec<_> =
        issuers.into_iter().filter_map(|issuer| issuer.join().unwrap().ok()).collect();
    assert_eq!(won.len(), 1);
    assert!(read(&path).authenticate(&won[0].bearer, now()).is_ok());
}
