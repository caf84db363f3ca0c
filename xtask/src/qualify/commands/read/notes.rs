//! The notes of the lane's handler.

use std::{fs, path::Path, time::Duration};

use super::ReadError;
use crate::qualify::commands::history::{HandlerRun, Moment};

/// Each note in a handler's log, in order. A log that is not there is an empty one.
pub(crate) fn handler_runs(log: &Path, began_at_micros: i64) -> Result<Vec<HandlerRun>, ReadError> {
    match fs::read_to_string(log) {
        Ok(text) => parse(&text, began_at_micros),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// A note that a kill cut short is the last before the next, or the last of all: it says nothing.
fn parse(text: &str, began_at_micros: i64) -> Result<Vec<HandlerRun>, ReadError> {
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole
        .map(|line| {
            note(line, began_at_micros).ok_or_else(|| format!("the handler noted {line:?}").into())
        })
        .collect()
}

fn note(line: &str, began_at_micros: i64) -> Option<HandlerRun> {
    let mut words = line.split(' ');
    let is_end = match words.next()? {
        "start" => false,
        "end" => true,
        _ => return None,
    };
    let (seq, try_number) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let command_id = words.next()?.to_owned();
    let answer = if is_end { Some(words.next()?.to_owned()) } else { None };
    let at = match words.next() {
        Some(time) => Some(moment(time, began_at_micros)?),
        None => None,
    };
    words.next().is_none().then_some(HandlerRun { seq, try_number, command_id, answer, at })
}

/// A time as `date +%s.%N` writes it.
fn moment(time: &str, began_at_micros: i64) -> Option<Moment> {
    let (seconds, fraction) = time.split_once('.')?;
    let seconds: i64 = seconds.parse().ok()?;
    let micros: i64 = fraction.get(..6)?.parse().ok()?;
    let since =
        seconds.checked_mul(1_000_000)?.checked_add(micros)?.checked_sub(began_at_micros)?;
    Some(Duration::from_micros(u64::try_from(since).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_and_ends_are_told_apart() {
        let text = "start 7 1 cmd_a 1000.500000001\nend 7 1 cmd_a beef 1001.250000999\nstart 8 2 cmd_b\nsta";
        let notes = parse(text, 1_000_000_000).unwrap();
        let run =
            |seq, try_number, id: &str, answer: Option<&str>, millis: Option<u64>| HandlerRun {
                seq,
                try_number,
                command_id: id.to_owned(),
                answer: answer.map(str::to_owned),
                at: millis.map(Duration::from_millis),
            };
        assert_eq!(
            notes,
            [
                run(7, 1, "cmd_a", None, Some(500)),
                run(7, 1, "cmd_a", Some("beef"), Some(1250)),
                run(8, 2, "cmd_b", None, None)
            ]
        );
        for wrong in ["begin 1 1 a\n", "start x 1 a\n", "end 1 1 a\n", "start 1 1 a 5.5\n", "\n"] {
            assert!(parse(wrong, 0).is_err(), "{wrong:?}");
        }
    }
}
