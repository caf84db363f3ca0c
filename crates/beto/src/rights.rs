//! What each user of the broker may do: the least that its part needs.

use serde_json::{Value, json};

use crate::{Caller, EXCHANGE, QUESTIONS, RESPONDER};

/// The rights of one user, each a regular expression over names; `^$` allows nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The user.
    pub user: &'static str,
    /// What it may declare and delete.
    pub configure: String,
    /// What it may publish to.
    pub write: String,
    /// What it may read.
    pub read: String,
    /// With which routing keys it may publish to [`EXCHANGE`].
    pub topics: String,
}

/// What a broker needs for the callers and the responder, as RabbitMQ's `load_definitions` reads it.
/// `users` are its objects of the users, with whatever it takes for their passwords.
#[must_use]
pub fn definitions(vhost: &str, users: &[Value]) -> Value {
    let rights = Rights::all();
    let permission = |of: &Rights| {
        json!({
            "vhost": vhost, "user": of.user,
            "configure": of.configure, "write": of.write, "read": of.read,
        })
    };
    let topic = |of: &Rights| {
        json!({
            "vhost": vhost, "user": of.user, "exchange": EXCHANGE,
            "write": of.topics, "read": NOTHING,
        })
    };
    json!({
        "vhosts": [{ "name": vhost }],
        "users": users,
        "permissions": rights.iter().map(permission).collect::<Vec<_>>(),
        "topic_permissions": rights.iter().map(topic).collect::<Vec<_>>(),
        "exchanges": [{
            "vhost": vhost, "name": EXCHANGE, "type": "topic", "durable": true,
            "auto_delete": false, "internal": false, "arguments": {},
        }],
        "queues": [{
            "vhost": vhost, "name": QUESTIONS, "durable": true, "auto_delete": false,
            "arguments": {
                "x-max-length": MOST_QUESTIONS, "x-overflow": "reject-publish",
                "x-message-ttl": LONGEST_STAY_MS,
            },
        }],
        "bindings": [{
            "vhost": vhost, "source": EXCHANGE, "destination": QUESTIONS,
            "destination_type": "queue", "routing_key": "#", "arguments": {},
        }],
    })
}

/// How many questions may wait; the broker refuses more.
const MOST_QUESTIONS: u32 = 1000;
/// How long one that does not say when it expires may wait.
const LONGEST_STAY_MS: u32 = 60_000;
/// Allows nothing.
const NOTHING: &str = "^$";
/// RabbitMQ's name for the right to publish to any queue.
const DEFAULT_EXCHANGE: &str = "amq.default";

impl Rights {
    /// The four callers and the responder.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let callers = Caller::ALL.into_iter().map(Self::of_caller);
        callers.chain([Self::of_responder()]).collect()
    }

    fn of_caller(caller: Caller) -> Self {
        let own = format!(r"^{caller}\.reply\.[0-9a-f]{{32}}$");
        let permissions = caller.permissions().iter();
        let topics: Vec<_> = permissions.map(|permission| escaped(permission.as_str())).collect();
        Self {
            user: caller.user(),
            configure: own.clone(),
            write: format!("^{}$", escaped(EXCHANGE)),
            read: own,
            topics: format!("^({})$", topics.join("|")),
        }
    }

    fn of_responder() -> Self {
        Self {
            user: RESPONDER,
            configure: NOTHING.to_owned(),
            write: format!("^{}$", escaped(DEFAULT_EXCHANGE)),
            read: format!("^{}$", escaped(QUESTIONS)),
            topics: NOTHING.to_owned(),
        }
    }
}

/// Of our names only the dot means something else in an expression.
fn escaped(name: &str) -> String {
    name.replace('.', r"\.")
}
