//! What the log and the metrics say, and what they don't.

use std::{
    collections::BTreeMap,
    fs, io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use test_support::Received;
use tracing_subscriber::fmt::MakeWriter;

use super::*;

/// All that is logged in this thread, at any level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn lines(&self, event: &str) -> usize {
        self.text().lines().filter(|line| line.contains(event)).count()
    }

    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let log = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(self.clone());
        tracing::subscriber::set_default(log.finish())
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_file_that_can_not_be_used_is_told_once_and_again_when_it_broke_again() {
    let log = Log::default();
    let _logged = log.start();
    let world = World::answering(refused).await;
    let ca = fs::read(&world.settings.ca_file).unwrap();
    let event = "token_review.file_kept";
    let reviews = async |times: usize| {
        for _ in 0..times {
            assert!(world.review(&token("a")).await.is_err());
        }
    };
    reviews(3).await;
    assert_eq!(log.lines(event), 0, "{}", log.text());
    fs::write(world.token_file(), "").unwrap();
    reviews(3).await;
    assert_eq!(log.lines(event), 1, "{}", log.text());
    fs::write(&world.settings.ca_file, "nothing").unwrap();
    reviews(3).await;
    assert_eq!(log.lines(event), 2, "{}", log.text());
    fs::write(world.token_file(), "good").unwrap();
    fs::write(&world.settings.ca_file, &ca).unwrap();
    reviews(1).await;
    fs::write(world.token_file(), "").unwrap();
    reviews(3).await;
    assert_eq!(log.lines(event), 3, "{}", log.text());
    assert_eq!(log.lines("token_review.ca_replaced"), 0, "it is the same as before");
    let more = test_support::TestCa::new().cert_pem();
    fs::write(&world.settings.ca_file, [ca, more.into_bytes()].concat()).unwrap();
    reviews(3).await;
    assert_eq!(log.lines("token_review.ca_replaced"), 1, "{}", log.text());
}

#[tokio::test]
async fn no_token_is_in_any_log_error_or_debug_output() {
    let log = Log::default();
    let logged = log.start();
    let a = token("s3cret-of-the-caller");
    let mut told = String::new();
    type Answer = fn(&Received) -> Reply;
    let echo = |request: &Received| Reply::new(500, "text/plain", request.body.clone());
    let cut = |request: &Received| Reply::Cut(request.body.clone());
    let header = |request: &Received| Reply::Whole {
        status: 302,
        content_type: "text/plain",
        extra_head: format!(
            "x-token: {}\r\nx-reviewer: {}\r\n",
            asked_about(request),
            request.headers["authorization"]
        ),
        body: Vec::new(),
    };
    let no_review = |request: &Received| Reply::new(200, "text/plain", request.body.clone());
    let large = |request: &Received| Reply::json(201, request.body.repeat(1000));
    let quoted =
        |request: &Received| answer(request, serde_json::json!({ "error": asked_about(request) }));
    for answer in [accepted as Answer, refused, echo, cut, header, no_review, large, quoted] {
        let world = World::answering(answer).await;
        let reviewed = world.review(&a).await;
        let probed = world.reviewer.probe().await;
        told.push_str(&format!("{reviewed:?} {probed:?} {:?} {a:?}\n", world.reviewer));
        if let Err(error) = reviewed {
            let mut next = Some(&error as &dyn std::error::Error);
            while let Some(error) = next {
                told.push_str(&format!("{error}\n"));
                next = error.source();
            }
        }
    }
    drop(logged);
    let text = log.text();
    assert!(text.contains("hyper"), "it is the log of this thread");
    for secret in ["s3cret-of-the-caller", REVIEWER, &a.expose()[20..60]] {
        assert!(!told.contains(secret), "{told}");
        let line = text.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "{line:?}");
    }
}

/// The counters and gauges of this thread.
#[derive(Default)]
struct Counters(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counters {
    fn values(&self) -> BTreeMap<String, u64> {
        let counters = self.0.lock().unwrap();
        counters.iter().map(|(name, value)| (name.clone(), value.load(Ordering::Relaxed))).collect()
    }
}

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<_> = key.labels().map(|label| label.value().to_owned()).collect();
        let name = [&[key.name().to_owned()][..], &labels].concat().join(" ");
        Counter::from_arc(Arc::clone(self.0.lock().unwrap().entry(name).or_default()))
    }

    /// With the bits of its number as the value: those of zero are zero.
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let name = key.name().to_owned();
        Gauge::from_arc(Arc::clone(self.0.lock().unwrap().entry(name).or_default()))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[tokio::test]
async fn every_review_is_counted_by_its_outcome_and_what_needed_none_apart() {
    let counters = Counters::default();
    let counted = metrics::set_default_local_recorder(&counters);
    let world = World::answering(|request| match asked_about(request) {
        text if text.ends_with("good") => accepted(request),
        text if text.ends_with("bad") => refused(request),
        text if text.ends_with("vouched") => of_a_stranger(request),
        _ => Reply::json(503, "{}"),
    })
    .await;
    let (good, bad, trouble) = (token("good"), token("bad"), token("trouble"));
    let _ = tokio::join!(world.review(&good), world.review(&good), world.review(&good));
    for token in [&good, &bad, &bad, &trouble, &strangers_token("vouched")] {
        let _ = world.review(token).await;
    }
    world.reviewer.probe().await.unwrap_err();
    World::answering(refused).await.reviewer.probe().await.unwrap();
    let world = World::with(Reply::Silence).await;
    let (one, other) = (strangers_token("one"), strangers_token("other"));
    // There is one place for both, or one seat.
    for (in_flight, requests) in [(3, 256), (4, 4)] {
        let reviewer = world.reviewer_with(|settings| {
            settings.budget = Duration::from_secs(2);
            settings.in_flight = in_flight;
            settings.requests = requests;
        });
        let _ = tokio::join!(reviewer.review(&one), reviewer.review(&other));
    }
    drop(counted);
    let expected = [
        ("token_review_probes_total answered", 1),
        ("token_review_probes_total trouble", 1),
        ("token_reviews_cached_total", 1),
        ("token_reviews_joined_total", 2),
        ("token_reviews_total accepted", 1),
        ("token_reviews_total busy", 1),
        ("token_reviews_total not_granted", 1),
        ("token_reviews_total refused", 2),
        ("token_reviews_total trouble", 3),
        ("token_reviews_turned_away_total strangers", 1),
        ("token_reviews_under_way", 0),
    ];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(counters.values(), expected);
}

#[tokio::test]
async fn nothing_is_under_way_when_a_flood_is_over() {
    let counters = Counters::default();
    let _counted = metrics::set_default_local_recorder(&counters);
    let permits = Arc::new(tokio::sync::Semaphore::new(0));
    let held = Arc::clone(&permits);
    let world =
        World::answering(move |request| Reply::Held(Arc::clone(&held), Box::new(refused(request))))
            .await;
    let under_way = || f64::from_bits(counters.values()["token_reviews_under_way"]);
    let flood: Vec<_> = (0..40)
        .map(|number| {
            let (reviewer, token) = (world.reviewer.clone(), strangers_token(&number.to_string()));
            tokio::spawn(async move { reviewer.review(&token).await })
        })
        .collect();
    world.until_asked(2).await;
    assert_eq!(under_way(), 40.0);
    // Some hang up, some find no place in time, some are answered.
    for caller in &flood[10..20] {
        caller.abort();
    }
    pass(Duration::from_secs(10)).await;
    permits.add_permits(2);
    for (number, caller) in flood.into_iter().enumerate() {
        assert_eq!(caller.await.is_err(), (10..20).contains(&number), "{number}");
    }
    test_support::eventually(Duration::from_secs(20), "the end", async || {
        (under_way() == 0.0).then_some(())
    })
    .await;
}
