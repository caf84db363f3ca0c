//! `site-admin keys import`.

use std::io::{BufRead, Read};

use clap::Args;
use ring::rand::SecureRandom;
use ssh_access::Registry;

use super::{
    failure::refused_alone,
    line::{self, MAX_BYTES},
    shown::Added,
};
use crate::{
    Failure, input,
    output::{Format, say},
};

#[derive(Args)]
pub(crate) struct Import {
    /// A file with one JSON object a line, `-` for standard input. The end may be absent.
    #[arg(value_name = "FILE")]
    keys: String,
}

pub(super) async fn run(
    registry: &Registry,
    arguments: &Import,
    format: Format,
    random: &(dyn SecureRandom + Sync),
) -> Result<(), Failure> {
    let file = &arguments.keys;
    let mut lines = input::open(file)?;
    let (mut number, mut refused) = (0_u64, 0_u64);
    loop {
        // A line that is too long is read so far as to say so, and then to its end.
        let mut bytes = Vec::new();
        let most = MAX_BYTES as u64 + 2;
        let read = lines.by_ref().take(most).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| Failure::data(format!("{file}: {error}")))?;
        if read == 0 {
            break;
        }
        number += 1;
        if read as u64 == most && !bytes.ends_with(b"\n") {
            lines.skip_until(b'\n').map_err(|error| Failure::data(format!("{file}: {error}")))?;
        }
        let outcome = match parsed(&bytes) {
            Ok(None) => continue,
            Err(reason) => Err(reason),
            Ok(Some(new)) => match registry.add_key(&new, random).await {
                Ok(done) => Ok(done),
                Err(error) => Err(refused_alone(error)?),
            },
        };
        match outcome {
            Ok(done) => format.print(&Added::of(&done))?,
            Err(reason) => {
                refused += 1;
                say(format_args!("{file}, line {number}: {reason}"));
            }
        }
    }
    if refused == 0 {
        return Ok(());
    }
    Err(Failure::data(format!("{file}: {refused} of {number} lines were refused")))
}

/// What a line says; nothing for an empty one.
fn parsed(bytes: &[u8]) -> Result<Option<ssh_access::NewKey>, String> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "is no UTF-8".to_owned())?;
    line::parse(text).map(Some)
}
