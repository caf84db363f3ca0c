//! What every producer has: the commands that it draws, what it was told, and what a restored
//! database took back.

use std::time::Duration;

use site_coordination::{
    CommandKind, EnqueueError, Environment, Invalid, JsonText, NewCommand, ProducerKey, RunId,
    SiteId, Stream,
};
use test_support::Random;
use tokio::sync::watch;

use super::{
    super::history::{Call, CallAnswer, Item, Moment, Recorder, StreamName, Way, sha256, text_of},
    work::{KIND, What, Work},
};

/// Between two tries of a call that brought no acknowledgement, at the most.
const BETWEEN_TRIES: Duration = Duration::from_millis(400);

/// A producer by its name.
pub(super) struct Worker {
    pub(super) stream: Stream,
    pub(super) random: Random,
    name: String,
    stream_name: StreamName,
    recorder: Recorder,
    enough: watch::Receiver<bool>,
    /// How many commands it has drawn.
    drawn: u64,
    acknowledged: Vec<Acknowledged>,
    /// How many restores it has seen.
    restores: usize,
}

/// A call whose commands are durable, as far as its producer knows.
struct Acknowledged {
    commands: Vec<NewCommand>,
    began: Moment,
    ended: Moment,
    /// A restored database may lack them.
    lost: bool,
}

impl Worker {
    pub(super) fn new(
        stream: &StreamName,
        name: &str,
        recorder: &Recorder,
        random: Random,
        enough: watch::Receiver<bool>,
    ) -> Result<Self, Invalid> {
        Ok(Self {
            stream: Stream {
                site: SiteId::parse(&stream.site)?,
                environment: Environment::parse(&stream.environment)?,
            },
            random,
            name: format!("{stream} {name}"),
            stream_name: stream.clone(),
            recorder: recorder.clone(),
            enough,
            drawn: 0,
            acknowledged: Vec::new(),
            restores: 0,
        })
    }

    /// Whether nothing new is wanted.
    pub(super) fn is_enough(&self) -> bool {
        *self.enough.borrow()
    }

    /// Waits for a drawn time below `longest`, or until nothing new is wanted.
    pub(super) async fn pause(&mut self, longest: Duration) {
        let time = self.random.duration(longest);
        // The sender is gone where the lane is: that is enough, too.
        let _ = tokio::time::timeout(time, self.enough.wait_for(|enough| *enough)).await;
    }

    pub(super) async fn back_off(&mut self) {
        tokio::time::sleep(self.random.duration(BETWEEN_TRIES)).await;
    }

    /// New commands, each with a key that stands for it alone.
    pub(super) fn draw(&mut self, count: u64) -> Vec<NewCommand> {
        (0..count).map(|_| self.draw_one()).collect()
    }

    fn draw_one(&mut self) -> NewCommand {
        self.drawn += 1;
        let key = format!("{}#{}", self.name.replace(' ', "/"), self.drawn);
        let work = Work::draw(&mut self.random);
        let has_run = work.what == What::Private || self.random.within(0..3) == 0;
        let run_id = has_run.then(|| format!("run-{}", self.drawn));
        NewCommand {
            key: ProducerKey::parse(&key).expect("names and numbers are a key"),
            kind: CommandKind::parse(KIND).expect("it is a kind"),
            run_id: run_id.map(|id| RunId::parse(&id).expect("a word and a number are a Run")),
            not_after: None,
            body: JsonText::parse(&work.body(&mut self.random)).expect("it is JSON"),
        }
    }

    pub(super) fn now(&self) -> Moment {
        self.recorder.now()
    }

    /// Notes a try, and says whether everything is acknowledged.
    pub(super) fn note(
        &mut self,
        way: Way,
        commands: &[NewCommand],
        began: Moment,
        answer: CallAnswer,
    ) -> bool {
        let ended = self.recorder.now();
        let done = matches!(answer, CallAnswer::Acknowledged(_));
        self.recorder.call(Call {
            stream: self.stream_name.clone(),
            producer: self.name.clone(),
            way,
            items: commands.iter().map(item).collect(),
            began,
            ended,
            answer,
        });
        if done {
            self.keep(commands, began, ended);
        }
        done
    }

    /// One that is acknowledged again counts from now on, as it stands where it stood before.
    fn keep(&mut self, commands: &[NewCommand], began: Moment, ended: Moment) {
        let key = |commands: &[NewCommand]| commands.first().map(|first| first.key.clone());
        let known = self.acknowledged.iter_mut().filter(|call| call.lost);
        for call in known {
            if key(&call.commands) == key(commands) {
                (call.began, call.ended, call.lost) = (began, ended, false);
                return;
            }
        }
        let commands = commands.to_vec();
        self.acknowledged.push(Acknowledged { commands, began, ended, lost: false });
    }

    /// The first call, by the order in which they were acknowledged, that a restored database may
    /// have lost.
    pub(super) fn lost(&mut self) -> Option<Vec<NewCommand>> {
        let seen = self.restores;
        let new = self.recorder.with(|history| history.restores[seen..].to_vec());
        self.restores += new.len();
        for restore in new {
            for call in &mut self.acknowledged {
                call.lost |=
                    call.ended > restore.backup_began && call.began < restore.restore_ended;
            }
        }
        self.acknowledged.iter().find(|call| call.lost).map(|call| call.commands.clone())
    }
}

fn item(command: &NewCommand) -> Item {
    Item {
        key: command.key.as_str().to_owned(),
        kind: command.kind.as_str().to_owned(),
        run_id: command.run_id.as_ref().map(|run| run.as_str().to_owned()),
        body: sha256(&[command.body.as_str().as_bytes()]),
    }
}

/// What an error says of the commands.
pub(super) fn answer_of(error: &EnqueueError) -> CallAnswer {
    let text = text_of(error);
    match error {
        EnqueueError::KeyConflict { .. }
        | EnqueueError::TooMany { .. }
        | EnqueueError::NotAfterOutOfRange { .. }
        | EnqueueError::StreamFull { .. } => CallAnswer::Refused(text),
        // A try that was repeated within may have stored them.
        EnqueueError::Contended | EnqueueError::Database(_) | EnqueueError::Corrupt(_) => {
            CallAnswer::Unknown(text)
        }
    }
}
