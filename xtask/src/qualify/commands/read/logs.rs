//! The JSON lines that programs log.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::qualify::commands::history::{AgentLine, Moment, ProcessRun};

/// By how much the time in a line may differ from its arrival before it is taken for another clock's.
const PLAUSIBLE: Duration = Duration::from_secs(300);

/// The events of an agent's log. What its handler wrote, and what is no JSON, is left out.
pub(crate) fn agent_lines(run: &ProcessRun, began_at_micros: i64) -> Vec<AgentLine> {
    let mut since = run.started;
    let mut lines = Vec::new();
    for line in &run.lines {
        let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(&line.text) else {
            continue;
        };
        let Some(Value::String(message)) = fields.remove("message") else { continue };
        // Other tasks log these, also in the middle of a request.
        if message.starts_with("handler.") || message.starts_with("token.") {
            continue;
        }
        let told = fields.remove("timestamp");
        let told = told.as_ref().and_then(Value::as_str);
        let told = told.and_then(|text| moment(text, run.clock_ahead_seconds, began_at_micros));
        let at = told.filter(|told| told.abs_diff(line.at) < PLAUSIBLE).unwrap_or(line.at);
        lines.push(AgentLine { since, at, message, fields });
        since = at;
    }
    lines
}

fn moment(timestamp: &str, ahead_seconds: i64, began_at_micros: i64) -> Option<Moment> {
    let time = chrono::DateTime::parse_from_rfc3339(timestamp).ok()?.timestamp_micros();
    let since =
        time.checked_sub(ahead_seconds.checked_mul(1_000_000)?)?.checked_sub(began_at_micros)?;
    Some(Duration::from_micros(u64::try_from(since).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qualify::commands::history::{LogLine, Program, StreamName};

    #[test]
    fn an_event_is_as_old_as_its_own_clock_says_less_what_that_is_ahead() {
        let line = |millis, text: &str| LogLine {
            at: Duration::from_millis(millis),
            text: text.to_owned(),
        };
        let run = ProcessRun {
            program: Program::Agent(StreamName::new("lab-a", "slurm")),
            started: Duration::from_millis(100),
            clock_ahead_seconds: 3600,
            exit: None,
            lines: vec![
                line(
                    900,
                    r#"{"timestamp":"1970-01-01T01:00:10.800000Z","message":"session.opened"}"#,
                ),
                line(
                    901,
                    r#"{"timestamp":"1970-01-01T01:00:10.801000Z","message":"handler.stderr"}"#,
                ),
                line(902, "plain text"),
                line(
                    990,
                    r#"{"timestamp":"1970-01-01T00:00:10.950000Z","message":"command.answered","command.seq":7}"#,
                ),
            ],
        };
        let lines = agent_lines(&run, 10_000_000);
        let told: Vec<_> = lines
            .iter()
            .map(|line| (line.message.as_str(), line.since.as_millis(), line.at.as_millis()))
            .collect();
        // The last one's clock is not what the lane set: its arrival counts.
        assert_eq!(told, [("session.opened", 100, 800), ("command.answered", 800, 990)]);
        assert_eq!(lines[1].fields["command.seq"], 7);
    }
}
