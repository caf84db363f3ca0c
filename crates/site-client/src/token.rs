//! The bearer token, from a file that somebody else renews.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

/// The largest token that is accepted, in bytes.
const MAX_TOKEN_BYTES: usize = 8 * 1024;

/// A file that holds one bearer token and at most one newline after it.
///
/// The file is read again for each request, so a rotated token is used at once. When it can't be
/// read or holds no token (it is just being replaced), the last good token stays in use and the
/// trouble is logged; the server decides for how long that one is good.
pub struct TokenFile {
    path: PathBuf,
    last: Mutex<SecretString>,
}

/// Why a file gives no token. Never carries what the file holds.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file can't be read.
    #[error("the token file can't be read")]
    Read(#[source] io::Error),
    /// The file is empty, but for the newline.
    #[error("the token file is empty")]
    Empty,
    /// More than 8 KiB.
    #[error("the token file holds more than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// White space, a second line or bytes that are no visible ASCII.
    #[error("the token file holds something else than one token of visible ASCII")]
    NotVisibleAscii,
}

impl TokenFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    ///
    /// [`TokenFileError`] when there is no token in it now.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, TokenFileError> {
        let path = path.into();
        let token = read(&path).await?;
        Ok(Self { path, last: Mutex::new(token) })
    }

    /// The value of the `Authorization` header with the token as the file holds it now.
    pub(crate) async fn authorization(&self) -> HeaderValue {
        match read(&self.path).await {
            Ok(token) => {
                let header = header(&token);
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = token;
                header
            }
            Err(error) => {
                let cause = std::error::Error::source(&error);
                let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                tracing::warn!(
                    error = format!("{error}{cause}"),
                    detail = "the last good token stays in use",
                    "token.kept"
                );
                header(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

impl std::fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads the file beside the runtime's own threads, as its file system may be slow; all of it in one
/// go, because each request waits for it.
async fn read(path: &Path) -> Result<SecretString, TokenFileError> {
    let path = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || {
        let limit = MAX_TOKEN_BYTES + 2;
        let mut bytes = Zeroizing::new(Vec::with_capacity(limit));
        File::open(path)?.take(limit as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    });
    let read = reading.await.unwrap_or_else(|ended| Err(io::Error::other(ended)));
    parse(&read.map_err(TokenFileError::Read)?)
}

pub(crate) fn parse(bytes: &[u8]) -> Result<SecretString, TokenFileError> {
    let token = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    if token.is_empty() {
        return Err(TokenFileError::Empty);
    }
    if token.len() > MAX_TOKEN_BYTES {
        return Err(TokenFileError::TooLong);
    }
    if !token.iter().all(u8::is_ascii_graphic) {
        return Err(TokenFileError::NotVisibleAscii);
    }
    let text = std::str::from_utf8(token).map_err(|_| TokenFileError::NotVisibleAscii)?;
    Ok(SecretString::from(text))
}

pub(crate) fn header(token: &SecretString) -> HeaderValue {
    let text = Zeroizing::new(format!("Bearer {}", token.expose_secret()));
    let mut value =
        HeaderValue::from_str(&text).expect("visible ASCII is always a valid header value");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sent(file: &TokenFile) -> String {
        file.authorization().await.to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn a_rotated_token_is_used_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "first\n").unwrap();
        let file = TokenFile::open(&path).await.unwrap();
        assert_eq!(sent(&file).await, "Bearer first");
        std::fs::write(&path, "other").unwrap();
        assert_eq!(sent(&file).await, "Bearer other");
    }

    #[tokio::test]
    async fn the_last_good_token_outlives_a_file_that_is_gone_or_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "first").unwrap();
        let file = TokenFile::open(&path).await.unwrap();
        std::fs::write(&path, "second").unwrap();
        assert_eq!(sent(&file).await, "Bearer second");
        std::fs::write(&path, "").unwrap();
        assert_eq!(sent(&file).await, "Bearer second");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(sent(&file).await, "Bearer second");
        std::fs::write(&path, "third").unwrap();
        assert_eq!(sent(&file).await, "Bearer third");
    }

    #[tokio::test]
    async fn a_missing_file_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let error = TokenFile::open(folder.path().join("token")).await.unwrap_err();
        assert!(matches!(error, TokenFileError::Read(_)));
    }

    #[test]
    fn only_one_token_of_visible_ascii_is_accepted() {
        for text in ["a", "a\n", "scnb_0123.abc", &"x".repeat(MAX_TOKEN_BYTES)] {
            assert!(parse(text.as_bytes()).is_ok(), "{text:?}");
        }
        assert!(matches!(parse(b""), Err(TokenFileError::Empty)));
        assert!(matches!(parse(b"\n"), Err(TokenFileError::Empty)));
        let long = "x".repeat(MAX_TOKEN_BYTES + 1);
        assert!(matches!(parse(long.as_bytes()), Err(TokenFileError::TooLong)));
        for text in ["a b", " a", "a\r\n", "a\n\n", "a\nb\n", "tök", "a\0"] {
            let refused = parse(text.as_bytes());
            assert!(matches!(refused, Err(TokenFileError::NotVisibleAscii)), "{text:?}");
        }
    }

    #[tokio::test]
    async fn debug_output_and_errors_hold_no_token() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("name");
        std::fs::write(&path, "s3cret").unwrap();
        let file = TokenFile::open(&path).await.unwrap();
        assert!(!format!("{file:?}").contains("s3cret"));
        assert!(!format!("{:?}", file.authorization().await).contains("s3cret"));
        assert!(!format!("{:?}", parse(b"s3cret s3cret").unwrap_err()).contains("s3cret"));
    }
}
