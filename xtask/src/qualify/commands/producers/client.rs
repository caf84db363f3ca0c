//! A producer as the control plane links it.

use std::time::Duration;

use site_coordination::{EnqueueError, Enqueued, NewCommand, Producer};

use super::{
    super::history::{CallAnswer, Place, Way},
    worker::{Worker, answer_of},
};

/// Between two calls, at the most.
const PACE: Duration = Duration::from_millis(700);

/// Enqueues until it is enough and everything is acknowledged.
pub(super) async fn run(mut worker: Worker, producer: Producer, longest_list: u64) {
    loop {
        while let Some(commands) = worker.lost() {
            call(&mut worker, &producer, &commands).await;
        }
        if worker.is_enough() {
            return;
        }
        worker.pause(PACE).await;
        let many = worker.random.within(0..3) == 0;
        let count = if many { worker.random.within(1..longest_list + 1) } else { 1 };
        let commands = worker.draw(count);
        call(&mut worker, &producer, &commands).await;
    }
}

/// Repeats the same call until it is acknowledged.
async fn call(worker: &mut Worker, producer: &Producer, commands: &[NewCommand]) {
    loop {
        let stream = worker.stream.clone();
        let began = worker.now();
        // One command by either way.
        let (way, answer) = match commands {
            [one] if worker.random.within(0..4) > 0 => {
                let answer = producer.enqueue(&stream, one.clone()).await;
                (Way::Enqueue, answer.map(|enqueued| vec![enqueued]))
            }
            _ => (Way::EnqueueMany, producer.enqueue_many(&stream, commands.to_vec()).await),
        };
        if worker.note(way, commands, began, told(answer)) {
            return;
        }
        worker.back_off().await;
    }
}

fn told(answer: Result<Vec<Enqueued>, EnqueueError>) -> CallAnswer {
    match answer {
        Ok(enqueued) => CallAnswer::Acknowledged(enqueued.iter().map(place).collect()),
        Err(error) => answer_of(&error),
    }
}

fn place(enqueued: &Enqueued) -> Place {
    Place {
        command_id: enqueued.id.as_str().to_owned(),
        seq: enqueued.seq.to_u64(),
        new: enqueued.new,
    }
}
