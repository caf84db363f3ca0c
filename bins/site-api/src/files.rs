//! Files that are read again while the process runs.
//!
//! They are watched by their content: a projected Secret is swapped by a link, an administrator's
//! file is renamed into place or written over, and none of these can be told by a name or a time.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    time::Duration,
};

use secrecy::zeroize::Zeroizing;
use tokio::time::{MissedTickBehavior, interval, timeout};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A look that takes longer is told as one that found nothing.
const LOOK_WITHIN: Duration = Duration::from_secs(5);

/// Looks about once a second, for ever. While a look hangs, as on a network file system without its
/// server, `found` is told so by `None` every few seconds.
pub(crate) async fn watch<T: Send + 'static>(
    look: impl Fn() -> T + Clone + Send + 'static,
    found: impl FnMut(Option<T>),
) {
    watch_at(LOOK_EVERY, LOOK_WITHIN, look, found).await;
}

async fn watch_at<T: Send + 'static>(
    every: Duration,
    within: Duration,
    look: impl Fn() -> T + Clone + Send + 'static,
    mut found: impl FnMut(Option<T>),
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut looking = tokio::task::spawn_blocking(look.clone());
        loop {
            match timeout(within, &mut looking).await {
                Ok(looked) => {
                    // A look that panicked was told by the hook.
                    found(looked.ok());
                    break;
                }
                Err(_elapsed) => found(None),
            }
        }
    }
}

/// The bytes of a regular file, wiped when they are dropped; `None` where it does not exist.
///
/// The reason of a failure never quotes the file.
pub(crate) fn read(path: &Path, most_bytes: usize) -> Result<Option<Zeroizing<Vec<u8>>>, String> {
    match read_regular(path, most_bytes) {
        Ok(bytes) if bytes.len() > most_bytes => {
            Err(format!("the file has more than {most_bytes} bytes"))
        }
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("the file can't be read: {}", error.kind())),
    }
}

/// At most one byte more than asked for.
fn read_regular(path: &Path, most_bytes: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // A pipe would be waited for.
    if !metadata.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX).min(most_bytes) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(length));
    File::open(path)?.take(most_bytes as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_readable_regular_file_has_a_reason_and_an_absent_one_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert_eq!(read(&file, 3).unwrap(), None);
        fs::write(&file, "abc").unwrap();
        assert_eq!(read(&file, 3).unwrap().unwrap().as_slice(), b"abc");
        assert_eq!(read(&file, 2).unwrap_err(), "the file has more than 2 bytes");
        let reason = read(folder.path(), 3).unwrap_err();
        assert_eq!(reason, "the file can't be read: is a directory");
        let reason = read(&file.join("below"), 3).unwrap_err();
        assert_eq!(reason, "the file can't be read: not a directory");
        let reason = read(Path::new("/dev/zero"), 3).unwrap_err();
        assert_eq!(reason, "the file can't be read: invalid input parameter");
        std::os::unix::fs::symlink(folder.path().join("nothing"), folder.path().join("link"))
            .unwrap();
        assert_eq!(read(&folder.path().join("link"), 3).unwrap(), None);
    }

    #[tokio::test]
    async fn a_look_that_hangs_is_told_until_it_ends() {
        let (go, waits) = std::sync::mpsc::channel::<()>();
        let waits = std::sync::Arc::new(std::sync::Mutex::new(waits));
        let look = move || waits.lock().unwrap().recv().is_ok();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let moment = Duration::from_millis(20);
        let watching = tokio::spawn(watch_at(moment, moment, look, move |found| {
            let _ended = tell.send(found);
        }));
        assert_eq!((told.recv().await, told.recv().await), (Some(None), Some(None)));
        go.send(()).unwrap();
        while told.recv().await.unwrap() != Some(true) {}
        assert!(!watching.is_finished(), "it watches for ever");
        watching.abort();
        drop(go);
    }
}
