use std::{
    fs,
    path::Path,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use callers::{
    BearerId, GrantState, Grants, IssueError, NativeBearer, Principal, Refused, RevokeError,
    Revoked, Scope, SiteId, StoreError, WhichGrant, issue, read, revoke,
};
use chrono::{DateTime, TimeDelta, Utc};

use crate::support::{agent, at, bearer, file, now, random, row, runtime};

const DAY: Duration = Duration::from_secs(86_400);

fn issued(path: &Path, principal: Principal, at: DateTime<Utc>) -> NativeBearer {
    let mut handed = None;
    issue(path, principal, DAY, at, &random(), |bearer, _| {
        handed = Some(bearer);
        Ok::<_, IssueError>(())
    })
    .unwrap();
    handed.unwrap()
}

fn by_id(bearer: &NativeBearer) -> WhichGrant {
    WhichGrant::Id(bearer.id().clone())
}

fn active(scope: Scope) -> WhichGrant {
    WhichGrant::Active { scope, site: SiteId::parse("hpc-1").unwrap() }
}

#[test]
fn a_revoked_bearer_is_refused_and_its_principal_gets_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let old = issued(&path, runtime("hpc-1"), now());
    let other = issued(&path, agent("hpc-1"), now());
    let Revoked { grant, new } = revoke(&path, &by_id(&old), now()).unwrap();
    assert!(new);
    assert_eq!((grant.id(), grant.revoked_at()), (old.id(), Some(now())));

    let grants = read(&path, now()).unwrap();
    assert_eq!(grants.authenticate(&old, now()).unwrap_err(), Refused::Revoked);
    assert_eq!(grants.find(&old).unwrap().state(now()), GrantState::Revoked);
    assert!(grants.authenticate(&other, now()).is_ok(), "the other grant is as it was");
    let next = issued(&path, runtime("hpc-1"), now());
    assert!(read(&path, now()).unwrap().authenticate(&next, now()).is_ok());
}

#[test]
fn revoking_again_changes_nothing_and_answers_with_the_first_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let bearer = issued(&path, runtime("hpc-1"), now());
    revoke(&path, &active(Scope::Commands), now()).unwrap();
    let before = fs::read(&path).unwrap();
    let later = now() + TimeDelta::hours(1);
    for which in [by_id(&bearer), active(Scope::Commands)] {
        let again = revoke(&path, &which, later).unwrap();
        assert!(!again.new);
        assert_eq!((again.grant.id(), again.grant.revoked_at()), (bearer.id(), Some(now())));
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_principal_stands_for_its_active_grant_and_else_for_the_one_revoked_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    for hour in 0..3 {
        let at = now() + TimeDelta::hours(hour);
        let bearer = issued(&path, runtime("hpc-1"), at);
        let revoked = revoke(&path, &active(Scope::Commands), at).unwrap();
        assert!(revoked.new);
        assert_eq!(revoked.grant.id(), bearer.id());
        assert_eq!(revoke(&path, &active(Scope::Commands), at).unwrap().grant, revoked.grant);
    }
}

#[test]
fn what_can_not_be_revoked_is_said_and_the_file_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    let nobody = BearerId::parse("0000000000000000").unwrap();
    let empty = revoke(&path, &WhichGrant::Id(nobody.clone()), now()).unwrap_err();
    assert!(matches!(empty, RevokeError::Unknown(_)), "{empty:?}");
    assert!(!path.exists());

    let bearer = issued(&path, runtime("hpc-1"), now());
    let before = fs::read(&path).unwrap();
    let refused = |which: &WhichGrant, at| revoke(&path, which, at).unwrap_err().to_string();
    assert_eq!(refused(&WhichGrant::Id(nobody), now()), "no grant has the id 0000000000000000");
    assert_eq!(
        refused(&active(Scope::SshAccess), now()),
        "ssh-access@hpc-1 has no grant to revoke"
    );
    let expired = now() + TimeDelta::days(1);
    assert_eq!(refused(&active(Scope::Commands), expired), "commands@hpc-1 has no grant to revoke");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert!(revoke(&path, &by_id(&bearer), expired).unwrap().new, "by its id it can be");

    fs::write(&path, "{}").unwrap();
    let invalid = revoke(&path, &by_id(&bearer), now()).unwrap_err();
    let RevokeError::Store(StoreError::Invalid { .. }) = invalid else { panic!("{invalid:?}") };
    assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
}

#[test]
fn of_thirty_two_that_revoke_at_once_one_does_it() {
    let folder = tempfile::tempdir().unwrap();
    let path: Arc<Path> = folder.path().join("grants.json").into();
    let bearer = issued(&path, runtime("hpc-1"), now());
    let which = by_id(&bearer);
    let barrier = Arc::new(Barrier::new(32));
    let revokers: Vec<_> = (0..32)
        .map(|minute| {
            let (path, barrier, which) = (Arc::clone(&path), Arc::clone(&barrier), which.clone());
            thread::spawn(move || {
                barrier.wait();
                revoke(&path, &which, now() + TimeDelta::minutes(minute)).unwrap()
            })
        })
        .collect();
    let all: Vec<_> = revokers.into_iter().map(|revoker| revoker.join().unwrap()).collect();
    assert_eq!(all.iter().filter(|revoked| revoked.new).count(), 1);
    assert!(all.iter().all(|revoked| revoked.grant == all[0].grant), "all tell the same time");
}

#[test]
fn revoking_and_issuing_at_once_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path: Arc<Path> = folder.path().join("grants.json").into();
    let old: Vec<_> = (0..16).map(|n| issued(&path, runtime(&format!("old-{n}")), now())).collect();
    let barrier = Barrier::new(32);
    thread::scope(|scope| {
        for (n, bearer) in old.iter().enumerate() {
            let (path, barrier) = (&path, &barrier);
            scope.spawn(move || {
                barrier.wait();
                revoke(path, &by_id(bearer), now()).unwrap()
            });
            scope.spawn(move || {
                barrier.wait();
                issued(path, runtime(&format!("new-{n}")), now())
            });
        }
    });
    let grants = read(&path, now()).unwrap();
    let counted = |state| grants.iter().filter(|grant| grant.state(now()) == state).count();
    assert_eq!((counted(GrantState::Revoked), counted(GrantState::Active)), (16, 16));
}

#[test]
fn a_bearer_whose_grant_found_no_place_is_said_to_be_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("grants.json");
    // While the bearer is handed over, something comes to the place of the first grants file.
    let refused = issue(&path, runtime("hpc-1"), DAY, now(), &random(), |_, _| {
        fs::write(&path, "mine").unwrap();
        Ok::<_, IssueError>(())
    })
    .unwrap_err();
    assert!(refused.to_string().contains("is not valid"), "{refused}");
    assert!(matches!(refused, IssueError::NotGranted(StoreError::Write { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn an_administrator_finds_whose_a_bearer_is_only_with_its_secret() {
    let held = bearer();
    let grants = Grants::parse(&file(&[row(&held)]), now()).unwrap();
    assert_eq!(grants.find(&held).unwrap().principal(), &runtime("hpc-1"));
    let expired = at("2030-02-01T00:00:00Z");
    assert_eq!(grants.find(&held).unwrap().state(expired), GrantState::Expired);
    assert_eq!(grants.find(&bearer()).unwrap_err(), Refused::Unknown);
    let other = bearer();
    let forged = [&held.expose()[..22], &other.expose()[22..]].concat();
    let forged = NativeBearer::parse(&forged).unwrap();
    assert_eq!(grants.find(&forged).unwrap_err(), Refused::WrongSecret);
}

#[test]
fn a_grants_file_that_is_not_there_can_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let refused = read(&folder.path().join("grants.json"), now()).unwrap_err();
    assert!(matches!(refused, StoreError::Read { .. }), "{refused:?}");
}
