//! The bearer token, from a file that somebody else renews.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use errors::error_chain;
use http::HeaderValue;
use secrecy::{ExposeSecret, SecretString, zeroize::Zeroizing};

/// The largest token that is accepted, in bytes.
const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// The largest file that is read, in bytes: there is room for white space.
const MAX_FILE_BYTES: usize = MAX_TOKEN_BYTES + 1024;

/// A bearer token of 1 to 8,192 characters of visible ASCII. It can't be printed by accident and is
/// wiped when it is dropped.
#[derive(Clone)]
pub struct BearerToken(SecretString);

/// A file that holds one bearer token, with or without ASCII white space around it.
///
/// The file is read again for each request, so a rotated token is used at once. When it can't be
/// read or holds no token (it is just being replaced), the last good token stays in use and the
/// trouble is logged; the server decides for how long that one is good.
pub struct TokenFile {
    path: PathBuf,
    last: Mutex<BearerToken>,
}

/// Why a file gives no token. Never carries what the file holds.
#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    /// The file can't be read.
    #[error("the token file can't be read")]
    Read(#[source] io::Error),
    /// The file is empty, but for white space.
    #[error("the token file is empty")]
    Empty,
    /// More than 8 KiB.
    #[error("the token file holds more than {MAX_TOKEN_BYTES} bytes")]
    TooLong,
    /// White space inside, a second line or bytes that are no visible ASCII.
    #[error("the token file holds something else than one token of visible ASCII")]
    NotVisibleAscii,
}

impl BearerToken {
    /// Takes what a file holds: one token. ASCII white space at both ends is no part of it; a server
    /// may take a token with such an end for good, so it is not sent along.
    ///
    /// # Errors
    ///
    /// [`TokenFileError`] when there is no token, or something beside it.
    pub fn parse(bytes: &[u8]) -> Result<Self, TokenFileError> {
        let token = bytes.trim_ascii();
        if token.is_empty() && bytes.len() <= MAX_FILE_BYTES {
            return Err(TokenFileError::Empty);
        }
        if token.len() > MAX_TOKEN_BYTES || bytes.len() > MAX_FILE_BYTES {
            return Err(TokenFileError::TooLong);
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(TokenFileError::NotVisibleAscii);
        }
        let text = std::str::from_utf8(token).map_err(|_| TokenFileError::NotVisibleAscii)?;
        Ok(Self(SecretString::from(text)))
    }

    /// Reads a file, and may wait for its file system.
    ///
    /// # Errors
    ///
    /// [`TokenFileError`] when there is no token in it now.
    pub fn read(path: &Path) -> Result<Self, TokenFileError> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_FILE_BYTES + 1));
        let file = File::open(path).map_err(TokenFileError::Read)?;
        file.take(MAX_FILE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(TokenFileError::Read)?;
        Self::parse(&bytes)
    }

    /// The token itself, for the one place that sends it in a body.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// The value of the `Authorization` header.
    #[must_use]
    pub fn authorization(&self) -> HeaderValue {
        let text = Zeroizing::new(format!("Bearer {}", self.expose()));
        let mut value =
            HeaderValue::from_str(&text).expect("visible ASCII is always a valid header value");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken")
    }
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
    pub async fn authorization(&self) -> HeaderValue {
        match read(&self.path).await {
            Ok(token) => {
                let header = token.authorization();
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) = token;
                header
            }
            Err(error) => {
                tracing::warn!(
                    error = error_chain(&error),
                    detail = "the last good token stays in use",
                    "token.kept"
                );
                self.last.lock().unwrap_or_else(PoisonError::into_inner).authorization()
            }
        }
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Reads the file beside the runtime's own threads, as its file system may be slow; all of it in one
/// go, because each request waits for it.
async fn read(path: &Path) -> Result<BearerToken, TokenFileError> {
    let path = path.to_owned();
    let reading = tokio::task::spawn_blocking(move || BearerToken::read(&path));
    reading.await.unwrap_or_else(|ended| Err(TokenFileError::Read(io::Error::other(ended))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(bytes: &[u8]) -> Result<BearerToken, TokenFileError> {
        BearerToken::parse(bytes)
    }

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
        let longest = "x".repeat(MAX_TOKEN_BYTES);
        for token in ["a", "scnb_0123.abc", &longest] {
            for (before, after) in [("", ""), ("", "\n"), (" \t", "\r\n"), ("\n\n", "\x0c \n\n")] {
                let parsed = parse(format!("{before}{token}{after}").as_bytes());
                assert_eq!(parsed.unwrap().expose(), token, "{before:?} {after:?}");
            }
        }
        for text in ["", "\n", " \r\n\t"] {
            assert!(matches!(parse(text.as_bytes()), Err(TokenFileError::Empty)), "{text:?}");
        }
        let much = " ".repeat(MAX_FILE_BYTES);
        for long in [format!("{longest}x"), format!("{much}a"), format!("{much} ")] {
            assert!(matches!(parse(long.as_bytes()), Err(TokenFileError::TooLong)));
        }
        // A vertical tab and a no-break space are no ASCII white space.
        for text in ["a b", "a\nb\n", "a\tb", "tök", "a\0", "\0a", "\x0ba", "a\u{a0}", "\u{feff}a"]
        {
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
        assert!(!format!("{:?}", parse(b"s3cret").unwrap()).contains("s3cret"));
    }

    proptest! {
        #[test]
        fn a_token_that_is_taken_is_what_stands_between_the_white_space(
            before in "[ \t\r\n\x0c]{0,3}", inner in "\\PC{0,8}|[!-~]{1,8}|[ -~\n]{0,8}", after in "[ \t\r\n\x0c]{0,3}",
        ) {
            let token = inner.trim_matches([' ', '\t', '\r', '\n', '\x0c']);
            let good = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
            let parsed = parse(format!("{before}{inner}{after}").as_bytes()).ok();
            prop_assert_eq!(parsed.as_ref().map(BearerToken::expose), good.then_some(token));
        }
    }
}
