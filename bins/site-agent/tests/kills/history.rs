//! The whole history of a run, from the database and from the handler's own log, and its check.

use std::collections::{HashMap, HashSet};

use site_coordination::CommandSummary;

pub(crate) struct History {
    enqueued: u32,
    commands: Vec<Command>,
    runs: Vec<Run>,
    /// The generation that stored each result, in the order of the stream.
    generations: Vec<u64>,
    /// The generation of the last session, where every start of the agent came to open one.
    last_generation: u64,
}

struct Command {
    seq: u64,
    key: String,
    id: String,
    /// The checksum in the stored result.
    answer: String,
}

/// One run of the handler, as it noted it.
#[derive(Clone, PartialEq, Eq)]
struct Run {
    seq: u64,
    try_number: u32,
    id: String,
    answer: String,
}

impl History {
    pub(crate) fn new(
        enqueued: u32,
        commands: &[CommandSummary],
        results: &[String],
        log: &str,
        generations: Vec<u64>,
        last_generation: u64,
    ) -> Self {
        let commands = commands.iter().zip(results).map(|(command, result)| {
            let result: serde_json::Value = serde_json::from_str(result).unwrap();
            assert_eq!(result["outcome"], "succeeded", "{result}");
            Command {
                seq: command.seq.to_u64(),
                key: command.key.clone(),
                id: command.id.as_str().to_owned(),
                answer: result["output"]["sha256"].as_str().unwrap().to_owned(),
            }
        });
        let runs = log.lines().map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let [seq, try_number, id, answer] = words[..] else { panic!("noted {line:?}") };
            Run {
                seq: seq.parse().unwrap(),
                try_number: try_number.parse().unwrap(),
                id: id.to_owned(),
                answer: answer.to_owned(),
            }
        });
        let (commands, runs) = (commands.collect(), runs.collect());
        Self { enqueued, commands, runs, generations, last_generation }
    }

    pub(crate) fn check(&self) {
        self.nothing_is_lost_or_out_of_place();
        self.the_handler_ran_in_order();
        self.each_repetition_was_announced();
        self.each_result_is_of_a_run();
        self.each_session_wrote_after_the_one_before_it();
        let repeats = self.runs.iter().filter(|run| run.try_number > 1).count();
        eprintln!("{} commands, {} runs, {repeats} repeated", self.commands.len(), self.runs.len());
    }

    fn nothing_is_lost_or_out_of_place(&self) {
        assert_eq!(self.commands.len(), self.enqueued as usize);
        for (command, place) in self.commands.iter().zip(1..) {
            assert_eq!((command.seq, &command.key), (place, &format!("key-{place}")));
        }
    }

    fn the_handler_ran_in_order(&self) {
        let mut last = 0;
        for run in &self.runs {
            assert!(run.seq == last || run.seq == last + 1, "{} after {last}", run.seq);
            last = run.seq;
        }
        assert_eq!(last, self.commands.len() as u64);
    }

    fn each_repetition_was_announced(&self) {
        let mut seen = HashSet::new();
        for run in &self.runs {
            assert!(seen.insert((run.seq, run.try_number)), "{} ran twice as one try", run.seq);
        }
    }

    fn each_result_is_of_a_run(&self) {
        let mut answers: HashMap<&str, HashSet<&str>> = HashMap::new();
        for run in &self.runs {
            answers.entry(&run.id).or_default().insert(&run.answer);
        }
        for Command { seq, id, answer, .. } in &self.commands {
            let of_runs = answers.get(id.as_str());
            assert!(of_runs.is_some_and(|runs| runs.contains(answer.as_str())), "{seq}");
        }
    }

    /// A start of the agent opens one session or, killed early, none; and a session that was
    /// superseded stores nothing any more.
    fn each_session_wrote_after_the_one_before_it(&self) {
        assert_eq!(self.generations.len(), self.commands.len());
        assert!(self.generations.is_sorted(), "{:?}", self.generations);
        let (first, last) = (self.generations.first(), self.generations.last());
        assert!(first.is_some_and(|first| *first >= 2), "{first:?}");
        assert!(last.is_some_and(|last| *last <= self.last_generation), "{last:?}");
    }
}
