//! The linked Runtime on a real Site with two listeners, behind a network that fails.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use site_protocol::Digest;
use test_support::{
    DatabaseUrls, Process, Proxy, ProxyHandle, ProxySetup, TestDatabase, TestSite, eventually,
};

use super::*;
use crate::qualify::commands::{
    history::{Answer, History, Told},
    producers::{Load, Producers},
};

const GENEROUS: Duration = Duration::from_secs(150);

/// Ends with the value, the listeners before their database.
struct Lab {
    linked: Linked,
    producers: Producers,
    recorder: Recorder,
    network: ProxyHandle,
    _proxy: Proxy,
    _listeners: [Process; 2],
    _folder: tempfile::TempDir,
    database: TestDatabase,
}

impl Lab {
    async fn start() -> Self {
        let database = TestDatabase::create().await;
        let folder = tempfile::tempdir().unwrap();
        let urls = DatabaseUrls {
            api: database.url("site_coordination_api"),
            producer: database.url("site_coordination_producer"),
        };
        let site = TestSite::set_up(folder.path(), "lab-a", "k8s", urls.clone()).unwrap();
        let other = site.another_listener().unwrap();
        let upstreams = vec![site.listen, other.listen];
        let listeners =
            [site.start_site_api().await.unwrap(), other.start_site_api().await.unwrap()];
        let (certificate, key) = (site.file("tls/tls.crt"), site.file("tls/tls.key"));
        let setup = ProxySetup { upstreams, certificate, key, seed: 3 };
        let proxy = Proxy::start(setup).await.unwrap();
        let recorder = Recorder::begin();
        let stream = StreamName::new("lab-a", "k8s");
        let load = Load {
            stream: stream.clone(),
            url: urls.producer,
            producers: 4,
            slow_producers: 1,
            longest_list: 64,
            backlog: 300,
            seed: 5,
        };
        let producers = Producers::start(&load, &recorder).unwrap();
        let setup = LinkedSetup {
            stream,
            origin: proxy.origin(),
            ca_file: site.file("tls/ca.crt"),
            token_file: site.file("bearer"),
            seed: 9,
        };
        let linked = Linked::start(setup, &recorder);
        Self {
            linked,
            producers,
            recorder,
            network: proxy.handle(),
            _proxy: proxy,
            _listeners: listeners,
            _folder: folder,
            database,
        }
    }

    /// Waits until so many commands have a result.
    async fn reach(&self, results: usize) {
        let stored = async || {
            assert!(!self.linked.task.is_finished(), "the Runtime has ended");
            (self.stored().await.len() >= results).then_some(())
        };
        eventually(GENEROUS, "results", stored).await;
    }

    async fn stored(&self) -> BTreeMap<u64, Digest> {
        let sql = "SELECT seq, digest FROM site_coordination.command_result";
        let rows = self.database.superuser().await.query(sql, &[]).await.unwrap();
        let digest = |bytes: Vec<u8>| Digest::from_bytes(bytes.try_into().unwrap());
        rows.iter().map(|row| (row.get::<_, i64>(0).unsigned_abs(), digest(row.get(1)))).collect()
    }

    /// Lets everything come to its end, and gives what was noted and what is stored.
    async fn finish(self) -> (History, BTreeMap<u64, Digest>) {
        let sql = "SELECT last_seq = done_seq FROM site_coordination.stream_head
                   JOIN site_coordination.stream_progress USING (site, environment)";
        let Self { linked, producers, recorder, database, .. } = self;
        producers.finish().await.unwrap();
        let admin = database.superuser().await;
        let ended = async || {
            assert!(!linked.task.is_finished(), "the Runtime has ended");
            admin.query_one(sql, &[]).await.unwrap().get::<_, bool>(0).then_some(())
        };
        eventually(GENEROUS, "every ending", ended).await;
        linked.finish().await.unwrap();
        let sql = "SELECT seq, digest FROM site_coordination.command_result";
        let rows = admin.query(sql, &[]).await.unwrap();
        let digest = |bytes: Vec<u8>| Digest::from_bytes(bytes.try_into().unwrap());
        let row =
            |row: &tokio_postgres::Row| (row.get::<_, i64>(0).unsigned_abs(), digest(row.get(1)));
        (recorder.finish(), rows.iter().map(row).collect())
    }
}

/// Each result that was sent: generation, beginning of its request, end, place, answer.
fn results(
    history: &History,
) -> impl Iterator<Item = (u64, Duration, Duration, u64, &Told, usize)> {
    history.requests.iter().flat_map(|request| match &request.told {
        Told::Results(sent, _) => (0..sent.results.len())
            .map(|index| {
                let seq = sent.results[index].seq;
                let generation = sent.writer.generation;
                (generation, request.began, request.ended, seq, &request.told, index)
            })
            .collect(),
        _ => Vec::new(),
    })
}

fn refusals(history: &History) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for request in &history.requests {
        match &request.told {
            Told::Session(_, Answer::Refused(refused))
            | Told::Poll(_, Answer::Refused(refused)) => {
                codes.insert(format!("other {}", refused.code));
            }
            Told::Results(sent, _) => {
                for result in &sent.results {
                    if let Answer::Refused(refused) = &result.answer {
                        codes.insert(refused.code.clone());
                    }
                }
            }
            _ => {}
        }
    }
    codes
}

fn is_broken(told: &Told) -> bool {
    match told {
        Told::Session(_, answer) => matches!(answer, Answer::Broken(_)),
        Told::Poll(_, answer) => matches!(answer, Answer::Broken(_)),
        Told::Output(_, answer) => matches!(answer, Answer::Broken(_)),
        Told::Results(_, answer) => matches!(answer, Answer::Broken(_)),
    }
}

/// What was told of results is what is stored, and nobody stored one after being taken over.
fn prove(history: &History, stored: &BTreeMap<u64, Digest>) {
    let opened: Vec<_> = history
        .requests
        .iter()
        .filter_map(|request| match &request.told {
            Told::Session(_, Answer::Good(session)) => Some((session.generation, request.ended)),
            _ => None,
        })
        .collect();
    let mut new = BTreeSet::new();
    for (generation, began, _, seq, told, index) in results(history) {
        let Told::Results(sent, _) = told else { continue };
        let result = &sent.results[index];
        let Answer::Good(receipt) = &result.answer else { continue };
        assert_eq!((receipt.seq, receipt.digest), (seq, stored[&seq]));
        if receipt.new {
            assert!(new.insert(seq), "{seq} was stored twice");
            let newer = opened.iter().find(|(other, ended)| *other > generation && *ended < began);
            assert_eq!(newer, None, "{seq} by {generation}");
        }
    }
    let broken: Vec<_> =
        history.requests.iter().filter(|request| is_broken(&request.told)).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

#[tokio::test]
async fn each_of_its_pranks_is_met_by_the_right_refusal() {
    let lab = Lab::start().await;
    for round in 1..=8 {
        lab.reach(round * 40).await;
        match round % 4 {
            0 => lab.network.cut_all(),
            1 => lab.network.cut_next_answer(),
            2 => lab.network.delay(Duration::from_millis(30)),
            _ => lab.network.delay(Duration::ZERO),
        }
    }
    let expected = ["output_missing", "predecessor_missing", "result_conflict", "stale_generation"];
    let recorder = lab.recorder.clone();
    let met = async || {
        let codes = recorder.with(|history| refusals(history));
        expected.iter().all(|code| codes.contains(*code)).then_some(())
    };
    eventually(GENEROUS, "every refusal", met).await;
    let (history, stored) = lab.finish().await;
    prove(&history, &stored);
    let sizes = history.requests.iter().filter_map(|request| match &request.told {
        Told::Results(sent, _) => Some(sent.results.len()),
        _ => None,
    });
    assert!(sizes.max() > Some(20));
}

#[tokio::test]
async fn it_goes_on_in_a_restored_database() {
    let lab = Lab::start().await;
    lab.reach(50).await;
    let backup_began = lab.recorder.now();
    let backup = lab.database.backup().await;
    let before = lab.stored().await.len();
    lab.reach(before + 50).await;
    let restore_began = lab.recorder.now();
    lab.database.restore(&backup).await;
    let restore_ended = lab.recorder.now();
    let restore =
        crate::qualify::commands::history::Restore { backup_began, restore_began, restore_ended };
    lab.recorder.restore(restore);
    let (history, stored) = lab.finish().await;
    // What has a receipt is sent again as it was.
    let mut told = BTreeMap::new();
    for (_, _, _, _, request, index) in results(&history) {
        let Told::Results(sent, _) = request else { continue };
        let result = &sent.results[index];
        if matches!(result.answer, Answer::Good(_)) {
            let first = told.entry(&result.command_id).or_insert(result.digest);
            assert_eq!(*first, result.digest, "{}", result.command_id);
        }
    }
    // What the older database lacked has its result by a request whose answer came after it was there.
    assert!(stored.len() > before + 50);
    let again: BTreeSet<_> = results(&history)
        .filter(|(_, _, ended, ..)| *ended > restore_ended)
        .map(|(_, _, _, seq, told, index)| {
            let Told::Results(sent, _) = told else { unreachable!() };
            (seq, sent.results[index].digest)
        })
        .collect();
    let after = stored.iter().filter(|(seq, _)| **seq > before as u64);
    for (seq, digest) in after.map(|(seq, digest)| (*seq, *digest)) {
        assert!(again.contains(&(seq, digest)), "{seq}");
    }
}
