//! The producer of the demo: commands one by one and in lists, at a steady pace.

use std::time::Duration;

use site_coordination::{
    CommandKind, EnqueueError, JsonText, NewCommand, Producer, ProducerKey, Stream,
};

/// Slower than the agent answers, so that the delivery is measured and not the queue.
const PACE: Duration = Duration::from_millis(40);

/// Every so many commands come as one list.
const LIST: u32 = 10;

/// Enqueues `count` commands, one each [`PACE`] on average: ten one by one, then ten as a list.
pub(crate) async fn enqueue(
    producer: Producer,
    stream: Stream,
    count: u32,
) -> Result<(), EnqueueError> {
    let mut ticks = tokio::time::interval(PACE);
    let mut next = 1;
    while next <= count {
        ticks.tick().await;
        if next % (2 * LIST) == LIST + 1 {
            let end = (next + LIST).min(count + 1);
            producer.enqueue_many(&stream, (next..end).map(command).collect()).await?;
            for _ in next..end - 1 {
                ticks.tick().await;
            }
            next = end;
        } else {
            producer.enqueue(&stream, command(next)).await?;
            next += 1;
        }
    }
    Ok(())
}

fn command(number: u32) -> NewCommand {
    let body = format!(r#"{{"script":"train.sh","step":{number},"nodes":2}}"#);
    NewCommand {
        key: ProducerKey::parse(&format!("demo-{number}")).expect("a short word is a key"),
        kind: CommandKind::parse("job.submit").expect("a short word is a kind"),
        run_id: None,
        not_after: None,
        body: JsonText::parse(&body).expect("the text is JSON"),
    }
}
