//! Many tokens whose keys nobody knows.

use futures_util::future::join_all;

use super::*;

/// Tokens that name keys which the issuer never had.
fn garbage(world: &World, count: usize) -> Vec<Jwt> {
    let forger = SigningKey::new("forger", "EdDSA");
    (0..count)
        .map(|number| {
            let header = json!({ "alg": "EdDSA", "kid": format!("k{number}"), "typ": "at+jwt" });
            forger.sign(&header, &world.claims())
        })
        .collect()
}

#[tokio::test]
async fn however_many_there_are_the_issuer_is_asked_once_in_each_interval() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    world.verify(&world.token(&key)).await.unwrap();
    let garbage = garbage(&world, 60);
    for interval in 1..=4 {
        for _ in 0..3 {
            // At once, and one after the other.
            let all = join_all(garbage.iter().map(|token| world.verify(token))).await;
            for outcome in all {
                assert_eq!(refused(outcome), LoginRefusal::UnknownKey);
            }
            for token in &garbage {
                assert_eq!(refused(world.verify(token).await), LoginRefusal::UnknownKey);
            }
        }
        // The first is in the interval of the fetch that found the keys.
        assert_eq!(world.fetches(), interval);
        world.verify(&world.token(&key)).await.unwrap();
        pass(Duration::from_secs(30)).await;
    }
    // Nobody asks: nothing is fetched.
    assert_eq!(world.fetches(), 4);
}

#[tokio::test]
async fn they_are_no_trouble_of_ours() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    for token in garbage(&world, 5) {
        assert_eq!(refused(world.verify(&token).await), LoginRefusal::UnknownKey);
    }
    assert!(world.verifier.trouble().borrow().is_none());
}

#[tokio::test]
async fn while_the_issuer_is_away_it_is_asked_once_in_each_pause() {
    let world = World::with(&[]).await;
    let garbage = garbage(&world, 30);
    world.answer(Some(Reply::json(503, "{}")));
    for pause in 1..=3 {
        for outcome in join_all(garbage.iter().map(|token| world.verify(token))).await {
            assert!(matches!(trouble(outcome), LoginTrouble::Status { .. }));
        }
        trouble(world.verify(&garbage[0]).await);
        assert_eq!(world.fetches(), pause);
        pass(Duration::from_secs(3)).await;
    }
}

/// They must not take every place of a request while the issuer is slow.
#[tokio::test]
async fn no_more_of_them_wait_than_may_and_who_is_vouched_for_waits_beside_them() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let verifier = world.verifier_with(|settings| settings.strangers = 3);
    verifier.verify(&world.token(&key)).await.unwrap();
    pass(Duration::from_secs(600)).await;
    let permits = Arc::new(tokio::sync::Semaphore::new(0));
    let good = {
        let answers = world.answers.lock().unwrap();
        let host = world.peer.origin().trim_start_matches("https://").to_owned();
        let request = Received {
            method: "GET".to_owned(),
            target: DISCOVERY.to_owned(),
            headers: [("host".to_owned(), host)].into(),
            body: Vec::new(),
        };
        answers.to(&request)
    };
    world.answer(Some(Reply::Held(Arc::clone(&permits), Box::new(good))));
    let verify = |token: Jwt| {
        let verifier = verifier.clone();
        tokio::spawn(async move { verifier.verify(&token).await })
    };
    let all: Vec<_> = garbage(&world, 4).into_iter().map(verify).collect();
    let vouched = [verify(world.token(&key)), verify(world.token(&key))];
    let mut all = all.into_iter();
    let (first, last) = (all.by_ref().take(3).collect::<Vec<_>>(), all.next().unwrap());
    // The fourth has its answer while nobody else has.
    assert!(matches!(last.await.unwrap(), Err(LoginError::Busy)));
    assert!(first.iter().chain(&vouched).all(|one| !one.is_finished()));
    permits.add_permits(1);
    for outcome in join_all(first).await {
        assert_eq!(refused(outcome.unwrap()), LoginRefusal::UnknownKey);
    }
    for outcome in join_all(vouched).await {
        outcome.unwrap().unwrap();
    }
    assert_eq!(world.fetches(), 2);
    // Their places are free again.
    pass(Duration::from_secs(30)).await;
    world.answer(None);
    let three = garbage(&world, 3);
    for outcome in join_all(three.iter().map(|token| verifier.verify(token))).await {
        assert_eq!(refused(outcome), LoginRefusal::UnknownKey);
    }
}
