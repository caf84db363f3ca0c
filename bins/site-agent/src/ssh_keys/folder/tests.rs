mod durability;

use super::{
    super::file::{HeldKey, Keys},
    *,
};
use rustix::fs::{FileType as Kind, mkfifoat};
use ssh_keys::{KeyId, PublicKey};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::Arc,
    sync::atomic::{AtomicU64, Ordering},
};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIIq0FswFZ8OL+YrfKI7fSR87uGqP9oBgWHWbOnvfcEc";

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn random() -> RandomSource {
    let next = AtomicU64::new(0);
    Arc::new(move || next.fetch_add(1, Ordering::Relaxed))
}

fn open(path: &Path) -> Result<Folder, FolderError> {
    Folder::open(path, us(), random())
}

/// A folder as it has to be.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

fn user(name: &str) -> UnixUser {
    UnixUser::parse(name).unwrap()
}

fn content(key: u8) -> UserFile {
    let held = HeldKey::new(PublicKey::parse(KEY).unwrap(), None);
    let lease = "2030-01-01T00:00:00Z".parse().unwrap();
    UserFile::new(Keys::from([(KeyId::from_bytes([key; 16]), held)]), lease)
}

fn write(folder: &Folder, name: &str, key: u8) -> io::Result<Vec<(UnixUser, Obstacle)>> {
    let replaces = match folder.look(&user(name))? {
        Place::Ours(Ours { id, .. }) | Place::Changed(id) => Some(id),
        Place::Free | Place::Taken(_) => None,
    };
    let mut batch = folder.batch();
    batch.write(&user(name), &content(key).to_string(), replaces)?;
    batch.commit()
}

fn obstacle(folder: &Folder, name: &str) -> Obstacle {
    match folder.look(&user(name)).unwrap() {
        Place::Taken(obstacle) => obstacle,
        other => panic!("{other:?}"),
    }
}

fn names(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_written_with_the_rights_that_sshd_wants_and_read_back() {
    let place = place();
    let folder = open(place.path()).unwrap();
    assert!(matches!(folder.look(&user("alice")).unwrap(), Place::Free));
    assert_eq!(write(&folder, "alice", 1).unwrap(), []);
    let Place::Ours(ours) = folder.look(&user("alice")).unwrap() else { panic!("not ours") };
    assert_eq!(ours.content, content(1));
    let meta = fs::metadata(place.path().join("alice")).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.uid(), meta.nlink()), (0o644, us(), 1));
    assert_eq!(names(place.path()), ["alice"]);
    assert_eq!(folder.users().unwrap(), [user("alice")]);
    let mut batch = folder.batch();
    batch.remove(&user("alice"), ours.id);
    assert_eq!(batch.commit().unwrap(), []);
    assert_eq!(names(place.path()), [""; 0]);
}

#[test]
fn a_folder_that_others_could_write_into_is_refused() {
    let place = place();
    for mode in [0o777, 0o775, 0o1755, 0o2755, 0o757] {
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        let refused = open(place.path());
        assert!(matches!(refused, Err(FolderError::Mode { mode: found, .. }) if found == mode));
    }
    for mode in [0o755, 0o711, 0o700] {
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        open(place.path()).unwrap();
    }
    let others = Folder::open(place.path(), us() + 1, random());
    assert!(matches!(others, Err(FolderError::Owner { .. })));
}

#[test]
fn a_link_a_file_or_nothing_in_the_place_of_the_folder_is_refused() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    symlink(at("folder"), at("link")).unwrap();
    fs::write(at("file"), "").unwrap();
    for name in ["link", "link/", "link/.", "file", "nothing"] {
        assert!(matches!(open(&at(name)), Err(FolderError::Open { .. })), "{name}");
    }
    open(&at("folder/")).unwrap();
}

#[test]
fn a_second_agent_is_refused_until_the_first_ends() {
    let place = place();
    let first = open(place.path()).unwrap();
    assert!(matches!(open(place.path()), Err(FolderError::InUse(_))));
    drop(first);
    open(place.path()).unwrap();
}

#[test]
fn what_is_in_the_way_is_told_and_nothing_else_is_written() {
    let (place, elsewhere) = (place(), tempfile::tempdir().unwrap());
    let at = |name: &str| place.path().join(name);
    let target = elsewhere.path().join("target");
    let ours = content(9).to_string();
    fs::write(&target, &ours).unwrap();
    symlink(&target, at("link")).unwrap();
    symlink(elsewhere.path().join("nowhere"), at("dangling")).unwrap();
    fs::hard_link(&target, at("hard")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let folder = open(place.path()).unwrap();
    mkfifoat(&folder.fd, "pipe", Mode::from_raw_mode(0o644)).unwrap();
    fs::write(at("own"), "ssh-ed25519 AAAA my own key\n").unwrap();
    fs::write(at("empty"), "").unwrap();
    let found = ["link", "dangling", "hard", "folder", "pipe", "own", "empty"]
        .map(|name| obstacle(&folder, name));
    let expected = [
        Obstacle::Link,
        Obstacle::Link,
        Obstacle::HardLink,
        Obstacle::Folder,
        Obstacle::Special,
        Obstacle::Unmanaged,
        Obstacle::Unmanaged,
    ];
    assert_eq!(found, expected);
    // Also where the look was before it came.
    for name in ["link", "dangling", "hard", "folder", "pipe", "own", "empty"] {
        let failed = write(&folder, name, 1).unwrap();
        assert_eq!(failed.len(), 1, "{name}");
        let mut batch = folder.batch();
        batch.write(&user(name), &content(1).to_string(), Some(FileId(1))).unwrap();
        assert_eq!(batch.commit().unwrap().len(), 1, "{name}");
        let mut batch = folder.batch();
        batch.remove(&user(name), FileId(1));
        assert_eq!(batch.commit().unwrap().len(), 1, "{name}");
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), ours);
    assert_eq!(fs::read_to_string(at("own")).unwrap(), "ssh-ed25519 AAAA my own key\n");
    assert_eq!(fs::read_to_string(at("empty")).unwrap(), "");
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert!(fs::symlink_metadata(at("dangling")).unwrap().is_symlink());
    assert_eq!(names(elsewhere.path()), ["target"]);
    let kind = statat(&folder.fd, "pipe", AtFlags::SYMLINK_NOFOLLOW).unwrap().st_mode;
    assert_eq!(Kind::from_raw_mode(kind), Kind::Fifo);
    assert_eq!(names(place.path()).len(), 7, "what was written beside the places is gone");
}

#[test]
fn a_file_that_came_after_the_look_stays() {
    let place = place();
    let folder = open(place.path()).unwrap();
    let mut batch = folder.batch();
    batch.write(&user("alice"), &content(1).to_string(), None).unwrap();
    fs::write(place.path().join("alice"), "mine").unwrap();
    assert_eq!(batch.commit().unwrap(), [(user("alice"), Obstacle::Replaced)]);
    assert_eq!(fs::read_to_string(place.path().join("alice")).unwrap(), "mine");
    // And one that took the place of ours.
    assert_eq!(write(&folder, "bob", 1).unwrap(), []);
    let Place::Ours(ours) = folder.look(&user("bob")).unwrap() else { panic!("not ours") };
    let mut batch = folder.batch();
    batch.write(&user("bob"), &content(2).to_string(), Some(ours.id)).unwrap();
    fs::write(place.path().join("new"), "mine").unwrap();
    fs::rename(place.path().join("new"), place.path().join("bob")).unwrap();
    assert_eq!(batch.commit().unwrap(), [(user("bob"), Obstacle::Replaced)]);
    assert_eq!(fs::read_to_string(place.path().join("bob")).unwrap(), "mine");
}

#[test]
fn a_file_of_another_user_or_with_other_rights_is_not_as_it_was_written() {
    let place = place();
    let folder = open(place.path()).unwrap();
    write(&folder, "alice", 1).unwrap();
    fs::set_permissions(place.path().join("alice"), fs::Permissions::from_mode(0o664)).unwrap();
    assert!(matches!(folder.look(&user("alice")).unwrap(), Place::Changed(_)));
    assert_eq!(write(&folder, "alice", 1).unwrap(), []);
    assert!(matches!(folder.look(&user("alice")).unwrap(), Place::Ours(_)));
    assert_eq!(us(), 0, "only root can give a file away: run the tests as root");
    std::os::unix::fs::chown(place.path().join("alice"), Some(65_534), None).unwrap();
    assert_eq!(obstacle(&folder, "alice"), Obstacle::Owner);
}

#[test]
fn leftovers_of_a_killed_agent_go_and_nothing_else_does() {
    let place = place();
    let at = |name: &str| place.path().join(name);
    let theirs = [
        ".alice",
        ".alice.0123456789abcde",
        ".alice.0123456789ABCDEF",
        ".root.0123456789abcdef",
        "alice.0123456789abcdef",
    ];
    for name in theirs {
        fs::write(at(name), "theirs").unwrap();
    }
    fs::create_dir(at(".bob.0123456789abcdef")).unwrap();
    fs::write(at(".alice.0123456789abcdef"), "half").unwrap();
    symlink(at(".alice"), at(".carol.0123456789abcdef")).unwrap();
    open(place.path()).unwrap();
    let mut expected: Vec<_> = theirs.iter().map(ToString::to_string).collect();
    expected.push(".bob.0123456789abcdef".to_owned());
    expected.sort();
    assert_eq!(names(place.path()), expected);
}

#[test]
fn a_name_that_is_there_already_is_not_written_through() {
    let (place, elsewhere) = (place(), tempfile::tempdir().unwrap());
    let folder = open(place.path()).unwrap();
    let target = elsewhere.path().join("target");
    fs::write(&target, "before").unwrap();
    symlink(&target, place.path().join(".alice.0000000000000000")).unwrap();
    let error = write(&folder, "alice", 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_to_string(&target).unwrap(), "before");
    assert_eq!(write(&folder, "alice", 1).unwrap(), [], "under another name");
}

#[test]
fn many_files_are_written_and_removed_together() {
    let place = place();
    let folder = open(place.path()).unwrap();
    let users: Vec<_> = (0..600).map(|number| user(&format!("u{number:03}"))).collect();
    for part in users.chunks(256) {
        let mut batch = folder.batch();
        for user in part {
            assert!(!batch.is_full());
            batch.write(user, &content(1).to_string(), None).unwrap();
        }
        assert_eq!(batch.is_full(), part.len() == 256);
        assert_eq!(batch.commit().unwrap(), []);
    }
    assert_eq!(folder.users().unwrap(), users);
    assert_eq!(names(place.path()).len(), 600);
}

#[test]
fn a_batch_that_is_not_committed_leaves_nothing() {
    let place = place();
    let folder = open(place.path()).unwrap();
    let mut batch = folder.batch();
    batch.write(&user("alice"), &content(1).to_string(), None).unwrap();
    assert_eq!(names(place.path()).len(), 1);
    drop(batch);
    assert_eq!(names(place.path()), [""; 0]);
}
