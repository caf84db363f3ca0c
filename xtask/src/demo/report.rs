//! What the demo claims, from the three places that know: the database, the handler's own log and
//! the agent's log.

use std::{collections::HashSet, error::Error, fmt};

use serde_json::Value;
use site_coordination::{Outcome, Producer, Seq, Stream};
use test_support::Process;

/// The figures of the final table.
pub(crate) struct Report {
    asked: u32,
    commands: usize,
    results: usize,
    gapless: bool,
    in_order: bool,
    repeats: usize,
    unannounced: usize,
    p50_ms: f64,
    p99_ms: f64,
}

/// How many commands the agent has a receipt for.
pub(crate) fn answered(agent: &Process) -> u32 {
    let lines = agent.lines();
    let count = lines.iter().filter(|line| line.text.contains("\"command.answered\"")).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Report {
    /// Reads all three places.
    pub(crate) async fn make(
        producer: &Producer,
        stream: &Stream,
        asked: u32,
        handler_log: &str,
        agent: &Process,
    ) -> Result<Self, Box<dyn Error>> {
        let mut commands = Vec::new();
        loop {
            let after = commands.last().map_or(Seq::ZERO, |(seq, _)| *seq);
            let page = producer.list(stream, after, 1000).await?;
            if page.is_empty() {
                break;
            }
            commands.extend(page.into_iter().map(|command| (command.seq, command.result)));
        }
        let succeeded = |outcome| outcome == Outcome::Succeeded;
        let results = commands
            .iter()
            .filter(|(_, result)| result.as_ref().is_some_and(|result| succeeded(result.outcome)));
        let runs = Runs::read(handler_log)?;
        let delays = delays(agent);
        Ok(Self {
            asked,
            commands: commands.len(),
            results: results.count(),
            gapless: commands.iter().zip(1..).all(|((seq, _), place)| seq.get() == place),
            in_order: runs.in_order(),
            repeats: runs.repeats(),
            unannounced: runs.unannounced(),
            p50_ms: quantile(&delays, 0.50),
            p99_ms: quantile(&delays, 0.99),
        })
    }

    /// Whether every promise held.
    pub(crate) fn is_good(&self) -> bool {
        let asked = self.asked as usize;
        self.commands == asked
            && self.results == asked
            && self.gapless
            && self.in_order
            && self.unannounced == 0
            && self.p50_ms.is_finite()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |good: bool| if good { "yes" } else { "NO" };
        let lost = (self.asked as usize).saturating_sub(self.results);
        writeln!(f)?;
        writeln!(f, "  commands enqueued            {:>8}", self.commands)?;
        writeln!(f, "  results stored, succeeded    {:>8}", self.results)?;
        writeln!(f, "  sequence without a gap       {:>8}", yes(self.gapless))?;
        writeln!(f, "  handler ran them in order    {:>8}", yes(self.in_order))?;
        writeln!(f, "  lost                         {lost:>8}")?;
        writeln!(f, "  run twice without notice     {:>8}", self.unannounced)?;
        writeln!(f, "  run again, announced (try 2) {:>8}", self.repeats)?;
        writeln!(f, "  enqueue to delivery, p50     {:>8.1} ms", self.p50_ms)?;
        write!(f, "  enqueue to delivery, p99     {:>8.1} ms (with the restart)", self.p99_ms)
    }
}

/// Sequence and try of each run of the handler, as the handler itself noted them.
struct Runs(Vec<(u64, u32)>);

impl Runs {
    fn read(log: &str) -> Result<Self, String> {
        let run = |line: &str| {
            let mut words = line.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        log.lines()
            .map(|line| run(line).ok_or_else(|| format!("the handler noted {line:?}")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Each run is of the same command as the one before, or of the next.
    fn in_order(&self) -> bool {
        let mut last = 0;
        self.0.iter().all(|(seq, _)| {
            let follows = *seq == last || *seq == last + 1;
            last = *seq;
            follows
        })
    }

    fn repeats(&self) -> usize {
        self.0.iter().filter(|(_, try_number)| *try_number > 1).count()
    }

    /// Runs of a command that had run before, under a number of a try that was used already.
    fn unannounced(&self) -> usize {
        let mut seen = HashSet::new();
        self.0.iter().filter(|run| !seen.insert(**run)).count()
    }
}

/// Milliseconds from enqueue to delivery, of every command that the agent received.
fn delays(agent: &Process) -> Vec<f64> {
    let mut delays: Vec<f64> = agent
        .lines()
        .iter()
        .filter(|line| line.text.contains("\"command.received\""))
        .filter_map(|line| {
            serde_json::from_str::<Value>(&line.text).ok()?["delivery.wait_ms"].as_f64()
        })
        .collect();
    delays.sort_by(f64::total_cmp);
    delays
}

/// The value below which the given part of a sorted list lies.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a list that is in memory"
    )]
    let index = (part * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_out_of_order_is_seen() {
        assert!(Runs::read("1 1 a\n2 1 b\n2 2 b\n3 1 c").unwrap().in_order());
        assert!(!Runs::read("1 1 a\n3 1 c").unwrap().in_order());
        assert!(!Runs::read("1 1 a\n2 1 b\n1 2 a").unwrap().in_order());
    }

    #[test]
    fn a_second_run_counts_by_whether_it_was_announced() {
        let runs = Runs::read("1 1 a\n1 2 a\n2 1 b\n2 1 b").unwrap();
        assert_eq!((runs.repeats(), runs.unannounced()), (1, 1));
    }

    #[test]
    fn a_line_that_is_no_run_is_an_error() {
        assert!(Runs::read("1 1 a\nnonsense").is_err());
    }

    #[test]
    fn a_quantile_is_a_value_of_the_list() {
        let list: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&list, 0.5), quantile(&list, 0.99)), (51.0, 99.0));
        assert!(quantile(&[], 0.5).is_nan());
    }
}
