//! A private RabbitMQ: what it delivers, keeps through a kill, and refuses.

use std::{fs, path::Path, time::Duration};

use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use test_support::{
    eventually,
    rabbitmq::{Broker, BrokerUser, Queue},
};

const EXCHANGE: &str = "tests";

fn users() -> [BrokerUser; 2] {
    let writer = BrokerUser {
        name: "writer".to_owned(),
        password: "writes".to_owned(),
        configure: "^$".to_owned(),
        write: "^tests$".to_owned(),
        read: "^$".to_owned(),
        topics: Some((EXCHANGE.to_owned(), "^a\\.".to_owned())),
    };
    [BrokerUser::administrator("admin", "administers"), writer]
}

async fn channel(url: &str) -> Channel {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    channel
}

async fn publish(channel: &Channel, exchange: &str, key: &str, body: &str) -> lapin::Result<()> {
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions::default();
    channel
        .basic_publish(exchange.into(), key.into(), options, body.as_bytes(), persistent)
        .await?
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_message_survives_a_kill_of_the_node() {
    let mut broker = Broker::start(&users(), &[EXCHANGE]).await.unwrap();
    let queue = Queue::bind(&broker.url("admin"), "q", EXCHANGE, "a.*").await.unwrap();
    let writer = channel(&broker.url("writer")).await;
    publish(&writer, EXCHANGE, "a.b", "1").await.unwrap();
    publish(&writer, EXCHANGE, "a.b.c", "2").await.unwrap();
    broker.kill();
    assert!(queue.take().await.is_err());
    broker.restart().await.unwrap();
    let queue = Queue::bind(&broker.url("admin"), "q", EXCHANGE, "a.*").await.unwrap();
    let kept = queue.take().await.unwrap().unwrap();
    assert_eq!((kept.routing_key.as_str(), kept.body, kept.persistent), ("a.b", 1.into(), true));
    assert!(queue.take().await.unwrap().is_none());
}

#[tokio::test]
async fn a_user_may_do_no_more_than_its_permissions_say() {
    let broker = Broker::start(&users(), &[EXCHANGE]).await.unwrap();
    for (exchange, key) in [("", "q"), ("amq.topic", "a.b"), (EXCHANGE, "b.a")] {
        let writer = channel(&broker.url("writer")).await;
        let refused = publish(&writer, exchange, key, "1").await.unwrap_err().to_string();
        assert!(refused.contains("ACCESS_REFUSED"), "{exchange} {key}: {refused}");
    }
    let refused = Queue::bind(&broker.url("writer"), "q", EXCHANGE, "#").await.err().unwrap();
    assert!(refused.to_string().contains("ACCESS_REFUSED"), "{refused}");
}

#[tokio::test]
async fn nothing_is_left_of_a_node_that_was_dropped() {
    let broker = Broker::start(&users(), &[EXCHANGE]).await.unwrap();
    let folder = broker.ca_file().parent().unwrap().to_owned();
    assert_ne!(processes_with(&folder), 0);
    drop(broker);
    // Its helpers end when they notice that it is gone.
    let gone = async || (processes_with(&folder) == 0).then_some(());
    eventually(Duration::from_secs(60), "the last process of the node", gone).await;
    assert!(!folder.exists());
}

/// How many processes have been told of a folder, by their arguments or their environment.
fn processes_with(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    let told = |pid: &std::ffi::OsStr| {
        ["cmdline", "environ"].iter().any(|file| {
            let path = Path::new("/proc").join(pid).join(file);
            fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&folder))
        })
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.filter(|entry| told(&entry.file_name())).count()
}
