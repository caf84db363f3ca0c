//! What a node knows from its start: users, their permissions, and exchanges.

use serde::Serialize;
use serde_json::{Value, json};

/// A user of the node and what it may do, as regular expressions over names; an empty text allows
/// nothing.
#[derive(Clone, Debug, Serialize)]
pub struct BrokerUser {
    /// Its name.
    pub name: String,
    /// Its password, as plain text: the node is gone with the test.
    pub password: String,
    /// Which exchanges and queues it may declare and delete.
    pub configure: String,
    /// Which exchanges it may publish to, and which queues it may bind.
    pub write: String,
    /// Which queues it may read, and which exchanges it may bind to.
    pub read: String,
    /// Which routing keys it may publish with to one topic exchange: the exchange and the
    /// expression. Any, where there is none.
    pub topics: Option<(String, String)>,
}

impl BrokerUser {
    /// One that may do everything.
    #[must_use]
    pub fn administrator(name: &str, password: &str) -> Self {
        let all = || ".*".to_owned();
        Self {
            name: name.to_owned(),
            password: password.to_owned(),
            configure: all(),
            write: all(),
            read: all(),
            topics: None,
        }
    }
}

/// The file that `load_definitions` reads, with durable topic exchanges.
pub(super) fn definitions(users: &[BrokerUser], exchanges: &[String]) -> Value {
    let exchange = |name: &String| {
        json!({
            "name": name, "vhost": "/", "type": "topic",
            "durable": true, "auto_delete": false, "internal": false, "arguments": {},
        })
    };
    let user =
        |user: &BrokerUser| json!({ "name": user.name, "password": user.password, "tags": "" });
    let permission = |user: &BrokerUser| {
        json!({
            "user": user.name, "vhost": "/",
            "configure": user.configure, "write": user.write, "read": user.read,
        })
    };
    let topic = |user: &BrokerUser| {
        let (exchange, write) = user.topics.as_ref()?;
        Some(json!({
            "user": user.name, "vhost": "/", "exchange": exchange, "write": write, "read": "^$",
        }))
    };
    json!({
        "vhosts": [{ "name": "/" }],
        "users": users.iter().map(user).collect::<Vec<_>>(),
        "permissions": users.iter().map(permission).collect::<Vec<_>>(),
        "topic_permissions": users.iter().filter_map(topic).collect::<Vec<_>>(),
        "exchanges": exchanges.iter().map(exchange).collect::<Vec<_>>(),
    })
}
