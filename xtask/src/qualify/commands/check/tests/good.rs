//! A good history: what may happen, happens.

use std::time::Duration;

use serde_json::json;

use super::{
    linked::refused,
    model::{AGENT, LINKED, Model},
};
use crate::qualify::commands::history::{
    CallAnswer, Fault, History, LaneEnd, Moment, Refused, Way,
};

/// Kills, an answer that is lost, a transaction that is rolled back, two senders that race, a writer
/// that was taken over, and a restored database.
pub(super) fn history() -> History {
    let mut m = Model::new();
    m.enqueue(AGENT, Way::Enqueue, &["a1"]);
    m.enqueue(AGENT, Way::EnqueueMany, &["a2", "a3-fail", "a4-private"]);
    m.enqueue(AGENT, Way::OpenTransaction, &["a5"]);
    let began = m.tick();
    let rolled_back = CallAnswer::Refused("rolled back".to_owned());
    m.call(AGENT, Way::OpenTransaction, &["never"], began, rolled_back);
    let began = m.tick();
    m.store(AGENT, "a6");
    m.call(AGENT, Way::Enqueue, &["a6"], began, CallAnswer::Unknown("cut".to_owned()));
    m.enqueue(AGENT, Way::Enqueue, &["a7"]);
    m.enqueue(AGENT, Way::Enqueue, &["a6"]);

    m.start_agent();
    m.agent_opens("session-of-agent-1");
    m.agent_works(1);
    m.agent_works(1);
    m.agent_works(1);
    m.handler_begins(1);
    m.kill_agent();
    m.start_agent();
    m.agent_opens("session-of-agent-2");
    m.agent_works(2);
    m.agent_works(1);

    m.enqueue(LINKED, Way::EnqueueMany, &["l1", "l2", "l3", "l4-private", "l5"]);
    let first = m.linked_opens("session-of-linked-1");
    m.polls(&first, 0);
    m.sends(&first, &[1, 2]);
    m.sends(&first, &[1, 2]);
    let second = m.linked_opens("session-of-linked-2");
    let stale = Refused {
        status: 409,
        code: "stale_generation".into(),
        generation: Some(3),
        ..Refused::default()
    };
    m.is_refused(&first, 3, stale);
    let began = m.tick();
    m.poll_is(&first, 2, began, refused("stale_generation"));
    m.sends(&first, &[2]);
    let missing = Refused {
        status: 409,
        code: "predecessor_missing".into(),
        done_seq: Some(2),
        ..Refused::default()
    };
    m.is_refused(&second, 4, missing);
    m.sends(&second, &[3]);
    m.stores_output(&second, 4);
    m.sends(&second, &[4]);

    m.back_up();
    m.enqueue(AGENT, Way::Enqueue, &["a8"]);
    m.enqueue(AGENT, Way::EnqueueMany, &["a9", "a10"]);
    m.agent_works(1);
    m.agent_works(1);
    m.agent_works(1);
    m.sends(&second, &[5]);
    m.enqueue(LINKED, Way::Enqueue, &["l6"]);
    m.polls(&second, 5);
    m.linked_opens("session-of-linked-3");
    m.restore();

    m.log("runtime.recovering", json!({"call.name": "poll", "problem.code": "cursor_ahead"}));
    m.agent_opens("session-of-agent-3");
    m.enqueue(AGENT, Way::EnqueueMany, &["a9", "a10"]);
    m.enqueue(AGENT, Way::Enqueue, &["a8"]);
    // What had run before the restore is answered from the journal, wherever it stands now.
    m.agent_answers(None);
    m.agent_answers(None);
    m.agent_works(1);
    m.agent_works(1);
    m.agent_answers(None);
    let began = m.tick();
    m.poll_is(&second, 6, began, refused("cursor_ahead"));
    let fourth = m.linked_opens("session-of-linked-4");
    m.polls(&fourth, 4);
    m.sends(&fourth, &[5]);
    m.enqueue(LINKED, Way::Enqueue, &["l6"]);
    m.polls(&fourth, 5);
    m.sends(&fourth, &[6]);

    let at = m.tick();
    let fault = Fault { kind: "agent killed".into(), target: "lab-a".into(), began: at, ended: at };
    m.history.faults.push(fault);
    let recovered = Some(m.tick());
    let bound = Duration::from_secs(60);
    m.history.end = LaneEnd { faults_stopped: Moment::ZERO, recovered, bound, missing: Vec::new() };
    m.history
}
