//! An issuer that is away: its last good keys vouch for a stated time, and nobody else does.

use super::*;

#[tokio::test]
async fn the_last_good_keys_vouch_for_an_hour_and_then_nobody_can_tell() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    world.verify(&world.token(&key)).await.unwrap();
    world.answer(Some(Reply::json(503, "{}")));
    // Fresh: nobody notices.
    pass(Duration::from_secs(599)).await;
    world.verify(&world.token(&key)).await.unwrap();
    assert!(world.verifier.trouble().borrow().is_none());
    // Old: noticed, and served.
    pass(Duration::from_secs(1)).await;
    world.verify(&world.token(&key)).await.unwrap();
    assert!(matches!(&*world.verifier.trouble().borrow(), Some(LoginTrouble::Status { .. })));
    pass(Duration::from_secs(2990)).await;
    world.verify(&world.token(&key)).await.unwrap();
    until_fetches(&world, 3).await;
    pass(Duration::from_secs(10)).await;
    trouble(world.verify(&world.token(&key)).await);
    world.answer(None);
    pass(Duration::from_secs(3)).await;
    world.verify(&world.token(&key)).await.unwrap();
    assert!(world.verifier.trouble().borrow().is_none());
}

#[tokio::test]
async fn a_key_that_is_not_among_the_last_good_ones_may_be_new_and_is_not_refused() {
    let (old, new) = (SigningKey::new("old", "ES256"), SigningKey::new("new", "ES256"));
    let world = World::with(&[&old]).await;
    world.verify(&world.token(&old)).await.unwrap();
    world.rotate_to(&[&new]);
    world.answer(Some(Reply::json(503, "{}")));
    pass(Duration::from_secs(30)).await;
    for _ in 0..2 {
        trouble(world.verify(&world.token(&new)).await);
    }
    assert_eq!(world.fetches(), 2);
    // A signature that the known key did not make is still none.
    let forged = SigningKey::new("old", "ES256");
    assert_eq!(refused(world.verify(&world.token(&forged)).await), LoginRefusal::Signature);
    pass(Duration::from_secs(600)).await;
    assert_eq!(refused(world.verify(&world.token(&forged)).await), LoginRefusal::Signature);
    world.answer(None);
    pass(Duration::from_secs(3)).await;
    world.verify(&world.token(&new)).await.unwrap();
}

/// Else an issuer that hangs would make everybody wait for it, again and again.
#[tokio::test]
async fn who_has_a_last_good_key_waits_once_and_not_again() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    world.verify(&world.token(&key)).await.unwrap();
    pass(Duration::from_secs(600)).await;
    world.answer(Some(Reply::json(503, "{}")));
    world.verify(&world.token(&key)).await.unwrap();
    world.answer(Some(Reply::Silence));
    pass(Duration::from_secs(3)).await;
    // Each is answered although the fetch that it began, or found, takes twice as long.
    for _ in 0..3 {
        let token = world.token(&key);
        let verified = tokio::time::timeout(Duration::from_secs(10), world.verify(&token));
        verified.await.expect("no wait").unwrap();
    }
    until_fetches(&world, 3).await;
    assert_eq!(world.asked()[2..], [DISCOVERY, DISCOVERY]);
}

/// Times that fit together badly are our matter too.
#[tokio::test]
async fn without_keys_nobody_is_refused_also_where_it_is_too_soon_to_fetch_any() {
    let key = SigningKey::new("k", "ES256");
    let world = World::with(&[&key]).await;
    let short = Duration::from_secs(10);
    let verifier = world.verifier_with(|settings| {
        (settings.times.fresh_for, settings.times.kept_for) = (short, short);
    });
    verifier.verify(&world.token(&key)).await.unwrap();
    pass(short).await;
    trouble(verifier.verify(&world.token(&key)).await);
    assert_eq!(world.fetches(), 1);
    pass(Duration::from_secs(20)).await;
    verifier.verify(&world.token(&key)).await.unwrap();
}
