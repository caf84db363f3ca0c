//! One fetch for everybody.

use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::*;

#[tokio::test]
async fn thirty_two_first_callers_cause_one_fetch() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let tokens: Vec<_> = (0..32).map(|_| world.token(&key)).collect();
    for outcome in join_all(tokens.iter().map(|token| world.verify(token))).await {
        outcome.unwrap();
    }
    assert_eq!(world.asked(), [DISCOVERY, KEYS]);
}

#[tokio::test]
async fn a_failure_is_shared_and_asked_about_again_after_a_pause() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    world.answer(Some(Reply::json(500, "{}")));
    let tokens: Vec<_> = (0..32).map(|_| world.token(&key)).collect();
    for outcome in join_all(tokens.iter().map(|token| world.verify(token))).await {
        trouble(outcome);
    }
    world.answer(None);
    trouble(world.verify(&tokens[0]).await);
    assert_eq!(world.fetches(), 1);
    pass(Duration::from_secs(3)).await;
    world.verify(&tokens[0]).await.unwrap();
    assert_eq!(world.fetches(), 2);
}

#[tokio::test]
async fn a_fetch_goes_on_when_its_caller_hangs_up() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let permits = Arc::new(Semaphore::new(0));
    let good = Reply::json(200, set(&[key.jwk()]));
    world.answers.lock().unwrap().set = Some(Reply::Held(Arc::clone(&permits), Box::new(good)));
    let (verifier, token) = (world.verifier.clone(), world.token(&key));
    let first = tokio::spawn(async move { verifier.verify(&token).await });
    until_fetches(&world, 1).await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    permits.add_permits(1);
    world.verify(&world.token(&key)).await.unwrap();
    assert_eq!(world.asked(), [DISCOVERY, KEYS]);
}

/// A fetch by hand is one like any other.
#[tokio::test]
async fn a_refresh_fetches_when_it_is_time_and_tells_what_came_of_it() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let mut told = world.verifier.trouble();
    world.answer(Some(Reply::json(500, "{}")));
    world.verifier.refresh().await;
    assert!(matches!(&*told.borrow_and_update(), Some(LoginTrouble::Status { .. })));
    world.answer(None);
    world.verifier.refresh().await;
    assert_eq!(world.fetches(), 1);
    pass(Duration::from_secs(3)).await;
    world.verifier.refresh().await;
    assert!(told.has_changed().unwrap() && told.borrow_and_update().is_none());
    world.verify(&world.token(&key)).await.unwrap();
    world.verifier.refresh().await;
    assert_eq!(world.fetches(), 2);
}
