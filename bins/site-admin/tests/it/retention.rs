//! `site-admin commands prune`: what is old goes, with a credential of its own.

use serde_json::{Value, json};

use crate::support::{API, Done, KEEPER, PRODUCER, Stream, admin};

const BODIES: &str = "SITE_COORDINATION_BODIES_RETENTION_DAYS";
const RECEIPTS: &str = "SITE_COORDINATION_RECEIPTS_RETENTION_DAYS";
const EVENTS: &str = "SITE_COORDINATION_EVENTS_RETENTION_DAYS";

impl Stream {
    fn prune(&self, more: &[&str], settings: &[(&str, &str)]) -> Done {
        let prune = admin(&[&["commands", "prune"], more].concat());
        let prune = prune.with(KEEPER, &self.database.url("site_coordination_keeper"));
        settings.iter().fold(prune, |prune, (name, value)| prune.with(name, value)).run()
    }

    fn pruned(&self, more: &[&str], settings: &[(&str, &str)]) -> Value {
        let done = self.prune(&[more, &["--json"]].concat(), settings);
        serde_json::from_str(&done.ok()).unwrap()
    }

    /// A command with a result for each of these ages in days, and one that has none and is old.
    async fn aged(&self, ages: &[u32]) {
        let sql = self.sql().await;
        for (n, age) in (1..).zip(ages) {
            self.enqueue(&format!("k{n}"), b"{}").ok();
            self.finish("succeeded").await;
            let older = format!(
                "UPDATE site_coordination.command_result
                    SET received_at = received_at - interval '{age} days 1 hour' WHERE seq = {n}"
            );
            sql.batch_execute(&older).await.unwrap();
        }
        self.enqueue("waiting", b"{}").ok();
        let older = "UPDATE site_coordination.command
                        SET created_at = created_at - interval '1000 days'";
        sql.batch_execute(older).await.unwrap();
    }

    fn shown(&self, key: &str) -> Value {
        let shown = self.commands("show", &["--key", key, "--json"]).run().ok();
        serde_json::from_str(&shown).unwrap()
    }
}

#[tokio::test]
async fn old_bodies_go_and_receipts_stay_and_a_second_run_does_nothing() {
    let stream = Stream::create().await;
    stream.aged(&[40, 31, 29]).await;
    let pruned = stream.pruned(&[], &[]);
    assert_eq!(pruned, json!({"bodies": 4, "outputs": 0, "commands": 0, "events": 0}));
    for (key, gone) in [("k1", true), ("k2", true), ("k3", false), ("waiting", false)] {
        let shown = stream.shown(key);
        assert_eq!(shown["body"].is_null(), gone, "{key}");
        assert_eq!(shown["state"], if key == "waiting" { "waiting" } else { "succeeded" });
    }
    let nothing = json!({"bodies": 0, "outputs": 0, "commands": 0, "events": 0});
    assert_eq!(stream.pruned(&[], &[]), nothing);
    let said = stream.prune(&[], &[]).ok();
    assert_eq!(
        said,
        "deleted 0 bodies, 0 private outputs, 0 commands with their receipts, 0 events\n"
    );
}

#[tokio::test]
async fn how_long_is_told_by_a_flag_or_else_by_a_setting() {
    let stream = Stream::create().await;
    stream.aged(&[9, 7, 5, 3]).await;
    let bodies =
        |more: &[&str], settings: &[(&str, &str)]| stream.pruned(more, settings)["bodies"].clone();
    assert_eq!(bodies(&[], &[]), 0);
    assert_eq!(bodies(&[], &[(BODIES, "8")]), 2);
    assert_eq!(bodies(&["--bodies", "6"], &[(BODIES, "1")]), 2);
    let pruned = stream.pruned(&["--bodies", "4", "--receipts", "6"], &[]);
    assert_eq!(pruned["bodies"], 2);
    // The row at the trimmed end stays for its chain digest; both older ones go.
    assert_eq!(pruned["commands"], 2);
    stream.commands("show", &["--key", "k1"]).run().refused(66, "the stream has no such command");
    assert_eq!(stream.shown("k3")["state"], "succeeded");
}

#[tokio::test]
async fn a_retention_that_is_none_is_refused() {
    let stream = Stream::create().await;
    for setting in [BODIES, RECEIPTS, EVENTS] {
        for wrong in ["0", "36501", "-1", "30d", ""] {
            stream.prune(&[], &[(setting, wrong)]).refused(64, setting);
        }
    }
    for flag in ["--bodies", "--receipts", "--events"] {
        stream.prune(&[flag, "0"], &[]).refused(64, "must be a whole number from 1 to 36500");
    }
    stream.prune(&["--bodies", "401"], &[]).refused(64, "can't go before bodies, 401 days");
}

#[tokio::test]
async fn only_the_keeper_prunes() {
    let stream = Stream::create().await;
    stream.aged(&[40]).await;
    for role in ["site_coordination_api", "site_coordination_producer", "site_coordination_owner"] {
        let url = stream.database.url(role);
        let prune = admin(&["commands", "prune"]).with(KEEPER, &url);
        prune.run().refused(70, "must not serve");
    }
    let others = admin(&["commands", "prune"]).with(PRODUCER, &stream.url());
    let others = others.with(API, &stream.database.url("site_coordination_api"));
    others.run().refused(64, KEEPER);
    assert!(!stream.shown("k1")["body"].is_null());
}
