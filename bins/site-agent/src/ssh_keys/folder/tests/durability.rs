//! What is on the disk when: each test looks at the folder at each call that brings something there.

use std::sync::Mutex;

use super::*;

/// What was brought to the disk, and which names stood in the folder then. Files are told by their size
/// and rights, as those that are under another name.
type Seen = Arc<Mutex<Vec<(&'static str, Vec<String>)>>>;

/// A folder that notes each call, and fails those of a kind.
fn noted(path: &Path, failing: &'static str) -> (Folder, Seen) {
    let mut folder = open(path).unwrap();
    let seen = Seen::default();
    let (path, noting) = (path.to_owned(), Arc::clone(&seen));
    folder.sync = Box::new(move |what| {
        let kind = match what {
            Synced::File(file) => {
                let metadata = file.metadata().unwrap();
                let whole = metadata.len() == content(1).to_string().len() as u64;
                assert!(whole && metadata.mode() & 0o7777 == 0o644, "{metadata:?}");
                "file"
            }
            Synced::FileSystem(_) => "file system",
            Synced::Names(_) => "names",
        };
        let places = names(&path).into_iter().filter(|name| !name.starts_with('.'));
        noting.lock().unwrap().push((kind, places.collect()));
        if kind == failing {
            return Err(io::Error::other("the disk is gone"));
        }
        synced(what)
    });
    (folder, seen)
}

fn taken(seen: &Seen) -> Vec<(&'static str, Vec<String>)> {
    std::mem::take(&mut seen.lock().unwrap())
}

fn places(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_is_on_the_disk_before_it_has_its_name_and_the_name_before_it_is_told() {
    let place = place();
    let (folder, seen) = noted(place.path(), "");
    assert_eq!(write(&folder, "alice", 1).unwrap(), []);
    assert_eq!(taken(&seen), [("file", places(&[])), ("names", places(&["alice"]))]);
    let Place::Ours(ours) = folder.look(&user("alice")).unwrap() else { panic!("not ours") };
    let mut batch = folder.batch();
    batch.remove(&user("alice"), ours.id);
    assert_eq!(batch.commit().unwrap(), []);
    assert_eq!(taken(&seen), [("names", places(&[]))]);
    // Where nothing is new there is nothing to wait for.
    assert_eq!(folder.batch().commit().unwrap(), []);
    assert_eq!(taken(&seen), []);
}

#[test]
fn of_many_files_all_are_on_the_disk_before_the_first_has_its_name() {
    let place = place();
    let (folder, seen) = noted(place.path(), "");
    let mut batch = folder.batch();
    let users: Vec<_> = (0..20).map(|number| format!("u{number:02}")).collect();
    for name in &users {
        batch.write(&user(name), &content(1).to_string(), None).unwrap();
    }
    assert_eq!(batch.commit().unwrap(), []);
    let seen = taken(&seen);
    assert_eq!(seen[0], ("file system", Vec::new()));
    assert_eq!(seen[1..21], [(); 20].map(|()| ("file", Vec::new())));
    assert_eq!(seen[21..], [("names", users)]);
}

#[test]
fn a_file_that_does_not_come_to_the_disk_changes_no_place() {
    for (failing, files) in [("file", 1), ("file system", 20)] {
        let place = place();
        let (folder, _) = noted(place.path(), failing);
        let mut batch = folder.batch();
        for number in 0..files {
            let name = user(&format!("u{number}"));
            batch.write(&name, &content(1).to_string(), None).unwrap();
        }
        batch.commit().unwrap_err();
        assert_eq!(names(place.path()), [""; 0], "{failing}");
    }
}

/// Also names that an agent before this one has changed, and was killed.
#[test]
fn names_that_may_not_be_on_the_disk_are_brought_there_by_the_next_commit() {
    let place = place();
    let (folder, seen) = noted(place.path(), "names");
    folder.batch().commit().unwrap_err();
    write(&folder, "alice", 1).unwrap_err();
    taken(&seen);
    drop(folder);
    let (folder, seen) = noted(place.path(), "");
    assert_eq!(folder.batch().commit().unwrap(), []);
    assert_eq!(taken(&seen), [("names", places(&["alice"]))]);
    assert_eq!(folder.batch().commit().unwrap(), []);
    assert_eq!(taken(&seen), []);
}
