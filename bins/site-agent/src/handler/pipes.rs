//! The handler's three standard streams.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::OwnedFd,
    process::Stdio,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::unix::pipe::Receiver,
    process::{ChildStderr, ChildStdin},
};

use super::answer::MAX_OUTPUT_BYTES;

/// The most that is logged of one line on standard error, in bytes.
const MAX_LINE_BYTES: u64 = 1024;
/// The most that is logged of one try's standard error, in bytes.
const MAX_LOGGED_BYTES: usize = 64 * 1024;

/// The handler's standard output, collected up to its limit.
///
/// The pipe is ours and not the child's, so that after the handler's end exactly what it wrote can
/// be taken out of it, also where a grandchild keeps the other end open.
pub(super) struct Output {
    receiver: Receiver,
    bytes: Vec<u8>,
}

impl Output {
    /// A pipe: our end and the handler's.
    pub(super) fn pipe() -> io::Result<(Self, Stdio)> {
        let (reader, writer) = io::pipe()?;
        let receiver = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        Ok((Self { receiver, bytes: Vec::new() }, Stdio::from(writer)))
    }

    /// Collects what the handler writes. Returns only when it wrote too much; may be cancelled.
    pub(super) async fn read_until_too_long(&mut self) {
        while self.bytes.len() <= MAX_OUTPUT_BYTES {
            match self.receiver.read_buf(&mut self.bytes).await {
                Ok(1..) => {}
                // All of it is here; how the handler ends is still open.
                Ok(0) | Err(_) => std::future::pending().await,
            }
        }
    }

    /// After the handler's end: everything that it wrote, or `None` when that is too much.
    pub(super) fn rest(self) -> Option<Vec<u8>> {
        let Self { receiver, mut bytes } = self;
        if let Ok(pipe) = receiver.into_nonblocking_fd() {
            let room = (MAX_OUTPUT_BYTES + 1).saturating_sub(bytes.len());
            // Reads what is there; the error of an empty pipe that somebody still holds is the end.
            let _ended = File::from(pipe).take(room as u64).read_to_end(&mut bytes);
        }
        (bytes.len() <= MAX_OUTPUT_BYTES).then_some(bytes)
    }
}

/// Gives the handler its input. One that reads none of it, or not all, is no error.
pub(super) async fn feed(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin
        && let Err(error) = stdin.write_all(&input).await
    {
        tracing::debug!(error = %error, "handler.input_not_read");
    }
}

/// Logs what the handler writes on standard error, up to a limit, and keeps the pipe empty until
/// nobody holds it any more.
pub(super) async fn log(stderr: Option<ChildStderr>) {
    let Some(stderr) = stderr else { return };
    let mut reader = BufReader::new(stderr);
    let mut logged = 0;
    loop {
        let mut line = Vec::new();
        match (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        if logged > MAX_LOGGED_BYTES {
            continue;
        }
        logged += line.len();
        if logged > MAX_LOGGED_BYTES {
            tracing::warn!(detail = "it is too long for the log", "handler.stderr_cut");
        } else {
            let text = String::from_utf8_lossy(&line);
            tracing::info!(handler.line = text.trim_end(), "handler.stderr");
        }
    }
}
