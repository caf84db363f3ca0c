//! `site-admin keys import`.

use std::io::{BufRead, Read};

use clap::Args;
use ring::rand::SecureRandom;
use ssh_access::{NewKey, Registry};

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
        let batch = read_batch(&mut lines, &mut number, file)?;
        if batch.is_empty() {
            break;
        }
        refused += add(registry, batch, file, format, random).await?;
    }
    if refused == 0 {
        return Ok(());
    }
    Err(Failure::data(format!("{file}: {refused} of {number} lines were refused")))
}

/// A line by its number: a key, or what is wrong with it.
type Line = (u64, Result<NewKey, String>);

/// The next lines that are not empty, as many as are stored at once; none at the end. `number` is that
/// of the last line that was read.
fn read_batch(mut lines: impl BufRead, number: &mut u64, file: &str) -> Result<Vec<Line>, Failure> {
    let failed = |error: std::io::Error| Failure::data(format!("{file}: {error}"));
    let mut batch = Vec::new();
    while batch.len() < Registry::MOST_AT_ONCE {
        // A line that is too long is read so far as to say so, and then to its end.
        let mut bytes = Vec::new();
        let most = MAX_BYTES as u64 + 2;
        let read = lines.by_ref().take(most).read_until(b'\n', &mut bytes).map_err(failed)?;
        if read == 0 {
            break;
        }
        *number += 1;
        if read as u64 == most && !bytes.ends_with(b"\n") {
            lines.skip_until(b'\n').map_err(failed)?;
        }
        batch.extend(parsed(&bytes).transpose().map(|line| (*number, line)));
    }
    Ok(batch)
}

/// Adds what can be added, tells what became of each line in their order, and returns how many were
/// refused.
async fn add(
    registry: &Registry,
    batch: Vec<Line>,
    file: &str,
    format: Format,
    random: &(dyn SecureRandom + Sync),
) -> Result<u64, Failure> {
    let new: Vec<_> = batch.iter().filter_map(|(_, line)| line.as_ref().ok().cloned()).collect();
    let mut outcomes = registry.add_keys(&new, random).await?.into_iter();
    let mut refused = 0;
    for (number, line) in batch {
        let outcome = match line {
            Err(reason) => Err(reason),
            Ok(_) => match outcomes.next() {
                Some(Ok(done)) => Ok(done),
                Some(Err(error)) => Err(refused_alone(error)?),
                None => Err("nobody said what became of it".to_owned()),
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
    Ok(refused)
}

/// What a line says; nothing for an empty one.
fn parsed(bytes: &[u8]) -> Result<Option<NewKey>, String> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "is no UTF-8".to_owned())?;
    line::parse(text).map(Some)
}
