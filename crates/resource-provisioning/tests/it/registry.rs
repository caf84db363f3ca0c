//! What is retained, released, listed and read.

use resource_provisioning::{BindingId, Listing, ReadError, ReleaseError, RetainError};

use crate::support::{Fixture, binding, member, other_bindings, site};

fn everything() -> Listing {
    Listing { member: None, released: true, after: None, limit: 1000 }
}

#[tokio::test]
async fn the_same_values_again_are_the_same_binding_and_others_are_refused() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let first = registry.retain(binding("m1")).await.unwrap();
    assert!(first.new);
    assert_eq!((&first.binding.retained, first.binding.released_at), (&binding("m1"), None));
    let again = registry.retain(binding("m1")).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.binding, first.binding);
    let others = other_bindings("m1");
    assert_eq!(others.len(), 4);
    for other in others {
        let refusal = registry.retain(other.clone()).await.unwrap_err();
        let RetainError::Conflict { retained } = refusal else { panic!("{other:?}: {refusal:?}") };
        assert_eq!(retained, first.binding.id);
    }
    assert_eq!(registry.list(&site("north-1"), &everything()).await.unwrap(), [first.binding]);
}

#[tokio::test]
async fn a_member_has_one_binding_at_each_site_and_may_share_its_user() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    registry.retain(binding("m1")).await.unwrap();
    let mut elsewhere = other_bindings("m1").remove(0);
    elsewhere.site = site("north-2");
    assert!(registry.retain(elsewhere).await.unwrap().new);
    assert!(registry.retain(binding("m2")).await.unwrap().new);
}

#[tokio::test]
async fn what_was_released_stays_so_and_another_binding_may_be_retained() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let first = registry.retain(binding("m1")).await.unwrap().binding;
    let released = registry.release(first.id).await.unwrap();
    assert!(released.new);
    assert!(released.binding.released_at.unwrap() >= first.retained_at);
    // The next one, with other values; then a late repetition of the release.
    let second = registry.retain(other_bindings("m1").remove(0)).await.unwrap();
    assert!(second.new);
    let again = registry.release(first.id).await.unwrap();
    assert!(!again.new);
    assert_eq!(again.binding, released.binding);
    let bindings = fixture.bindings();
    let found = bindings.retained(&site("north-1"), &member("m1")).await.unwrap();
    assert_eq!(found, Some(second.binding.clone()));
    // The first values again are a new binding.
    registry.release(second.binding.id).await.unwrap();
    let third = registry.retain(binding("m1")).await.unwrap();
    assert!(third.new);
    assert_ne!(third.binding.id, first.id);
    for unknown in ["4711", "9223372036854775807"] {
        let refusal = registry.release(BindingId::parse(unknown).unwrap()).await.unwrap_err();
        assert!(matches!(refusal, ReleaseError::UnknownBinding), "{refusal:?}");
    }
}

#[tokio::test]
async fn the_reader_finds_exactly_what_is_retained_now() {
    let fixture = Fixture::create().await;
    let (registry, bindings) = (fixture.registry(1), fixture.bindings());
    let retained = registry.retain(binding("m1")).await.unwrap().binding;
    let found = async |site_id: &str, name: &str| {
        bindings.retained(&site(site_id), &member(name)).await.unwrap()
    };
    assert_eq!(found("north-1", "m1").await, Some(retained.clone()));
    for (site, name) in [("north-2", "m1"), ("north-1", "m2"), ("North-1", "m1"), ("north-1", "M1")]
    {
        assert_eq!(found(site, name).await, None, "{site} {name}");
    }
    registry.release(retained.id).await.unwrap();
    assert_eq!(found("north-1", "m1").await, None);
}

#[tokio::test]
async fn lists_are_in_order_and_in_pages() {
    let fixture = Fixture::create().await;
    let registry = fixture.registry(1);
    let mut all = Vec::new();
    for number in 0..6 {
        all.push(registry.retain(binding(&format!("m{number}"))).await.unwrap().binding);
    }
    let mut elsewhere = binding("m1");
    elsewhere.site = site("north-2");
    registry.retain(elsewhere).await.unwrap();
    all[2] = registry.release(all[2].id).await.unwrap().binding;
    let here = site("north-1");
    assert_eq!(registry.list(&here, &everything()).await.unwrap(), all);
    let retained = Listing { released: false, ..everything() };
    let now: Vec<_> = all.iter().filter(|one| one.released_at.is_none()).cloned().collect();
    assert_eq!(registry.list(&here, &retained).await.unwrap(), now);
    let mut paged = Vec::new();
    loop {
        let after = paged.last().map(|last: &resource_provisioning::Binding| last.id);
        let page = Listing { after, limit: 2, ..everything() };
        let page = registry.list(&here, &page).await.unwrap();
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    let of_one = Listing { member: Some(member("m2")), ..everything() };
    assert_eq!(registry.list(&here, &of_one).await.unwrap(), all[2..3]);
    let of_one = Listing { member: Some(member("m2")), ..retained };
    assert!(registry.list(&here, &of_one).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_database_holds_the_rules_of_the_names_too() {
    let fixture = Fixture::create().await;
    let sql = fixture.sql().await;
    let insert = |user: &str, uid: i64, gid: i64| {
        format!(
            "INSERT INTO resource_provisioning.native_binding
                    (site, member_id, unix_user, uid, gid, account)
             VALUES ('north-1', 'm1', '{user}', {uid}, {gid}, 'a')"
        )
    };
    for (user, uid, gid) in [
        ("root", 1000, 1000),
        ("Ada", 1000, 1000),
        ("ada\n", 1000, 1000),
        ("", 1000, 1000),
        ("ada", 0, 1000),
        ("ada", 999, 1000),
        ("ada", 65_534, 1000),
        ("ada", 2_147_483_648, 1000),
        ("ada", 1000, 0),
        ("ada", 1000, 99),
        ("ada", 1000, 65_535),
    ] {
        let refusal = sql.batch_execute(&insert(user, uid, gid)).await.unwrap_err();
        let code = refusal.code();
        assert_eq!(code, Some(&tokio_postgres::error::SqlState::CHECK_VIOLATION), "{user} {uid}");
    }
    sql.batch_execute(&insert("ada", 1000, 100)).await.unwrap();
    // What the rules of this release don't take is no binding, whatever the table says.
    sql.batch_execute(
        "ALTER TABLE resource_provisioning.native_binding
              DROP CONSTRAINT native_binding_unix_user_check;
         UPDATE resource_provisioning.native_binding SET unix_user = 'root'",
    )
    .await
    .unwrap();
    let refusal = fixture.bindings().retained(&site("north-1"), &member("m1")).await.unwrap_err();
    assert!(matches!(refusal, ReadError::Corrupt("a Unix user")), "{refusal:?}");
}
