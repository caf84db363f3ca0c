use super::*;
use proptest::prelude::*;

fn add(seq: u64) -> SshChange {
    let mut change = SshChange {
        seq,
        op: SshOperation::Add,
        unix_user: "alice".to_owned(),
        key_id: format!("key_{seq}"),
        member_id: "member-1".to_owned(),
        public_key: Some("ssh-ed25519 AAAA".to_owned()),
        expires_at: Some("2026-01-02T03:04:05Z".parse().unwrap()),
        enforce_by: None,
        digest: Digest::ZERO,
    };
    change.digest = ssh_change_digest(&change);
    change
}

fn remove(seq: u64) -> SshChange {
    let mut change = SshChange {
        op: SshOperation::Remove,
        public_key: None,
        expires_at: None,
        enforce_by: Some("2026-01-02T03:04:05.000006Z".parse().unwrap()),
        ..add(seq)
    };
    change.digest = ssh_change_digest(&change);
    change
}

fn place(changes: &[SshChange]) -> SshCursor {
    changes.iter().fold(SshCursor::START, |place, change| place.after(&change.digest).unwrap())
}

/// The changes after the first one, of a feed that has one more.
fn page() -> (SshCursor, SshChanges) {
    let all = [add(1), remove(2), add(3), add(4)];
    let page = SshChanges {
        changes: all[1..3].to_vec(),
        next: place(&all[..3]).to_string(),
        head: place(&all).to_string(),
        server_time: DateTime::UNIX_EPOCH,
        lease_until: DateTime::UNIX_EPOCH,
    };
    (place(&all[..1]), page)
}

#[test]
fn a_change_has_the_digest_of_the_documentation() {
    // Put together and hashed by another program.
    let hex = "d38c9b0eae786603009680b841a7389d5f62ae5e231137286c1bb121324d49a3";
    assert_eq!(remove(7).digest.to_string(), hex);
}

#[test]
fn every_field_is_in_the_digest() {
    let base = add(7);
    let others: [fn(&mut SshChange); 7] = [
        |change| change.seq = 8,
        |change| change.op = SshOperation::Remove,
        |change| change.unix_user.push('x'),
        |change| change.key_id.push('x'),
        |change| change.member_id.push('x'),
        |change| change.public_key = None,
        |change| change.expires_at = None,
    ];
    for other in others {
        let mut changed = base.clone();
        other(&mut changed);
        assert_ne!(ssh_change_digest(&changed), base.digest, "{changed:?}");
    }
    let removed = remove(7);
    let changed = SshChange { enforce_by: None, ..removed.clone() };
    assert_ne!(ssh_change_digest(&changed), removed.digest);
}

#[test]
fn a_page_that_continues_is_taken_with_its_places() {
    let (after, page) = page();
    let (next, head) = check(&page, after).unwrap();
    assert_eq!((next.seq(), head.seq()), (3, 4));
    assert_eq!((next.to_string(), head.to_string()), (page.next.clone(), page.head.clone()));
    let nothing = SshChanges { changes: Vec::new(), next: after.to_string(), ..page };
    assert_eq!(check(&nothing, after).unwrap().0, after);
}

#[test]
fn each_contradiction_of_a_page_is_told() {
    let (after, good) = page();
    let spoilt = |spoil: fn(&mut SshChanges)| {
        let mut page = good.clone();
        spoil(&mut page);
        check(&page, after).unwrap_err()
    };
    let gap = spoilt(|page| drop(page.changes.remove(0)));
    assert_eq!(gap, FeedError::Gap { expected: 2, found: 3 });
    let twice = spoilt(|page| page.changes[1] = page.changes[0].clone());
    assert_eq!(twice, FeedError::Gap { expected: 3, found: 2 });
    let other = spoilt(|page| page.changes[1].unix_user = "bob".to_owned());
    assert_eq!(other, FeedError::ChangeDigest { seq: 3 });
    let swapped = spoilt(|page| {
        let change = &mut page.changes[1];
        change.unix_user = "bob".to_owned();
        change.digest = ssh_change_digest(change);
    });
    assert_eq!(swapped, FeedError::Next { seq: 3 });
    let keyless = spoilt(|page| {
        let change = &mut page.changes[1];
        change.public_key = None;
        change.digest = ssh_change_digest(change);
    });
    assert_eq!(keyless, FeedError::Fields { seq: 3 });
    let unenforced = spoilt(|page| {
        let change = &mut page.changes[0];
        change.enforce_by = None;
        change.digest = ssh_change_digest(change);
    });
    assert_eq!(unenforced, FeedError::Fields { seq: 2 });
    assert_eq!(spoilt(|page| page.next.push('0')), FeedError::Next { seq: 3 });
    assert_eq!(spoilt(|page| page.head.clear()), FeedError::Head);
    assert_eq!(spoilt(|page| page.head = SshCursor::START.to_string()), FeedError::Head);
    // As high as the changes, with another digest: another history.
    let forked = spoilt(|page| page.head = format!("3.{}", "ab".repeat(32)));
    assert_eq!(forked, FeedError::Head);
    assert!(matches!(
        check(&good, SshCursor::START),
        Err(FeedError::Gap { expected: 1, found: 2 })
    ));
}

#[test]
fn a_cursor_has_one_spelling() {
    let digest = "ab".repeat(32);
    let zeros = "0".repeat(64);
    for good in [format!("0.{zeros}"), format!("1.{digest}"), format!("{}.{digest}", i64::MAX)] {
        assert_eq!(good.parse::<SshCursor>().unwrap().to_string(), good);
    }
    for bad in [
        String::new(),
        digest.clone(),
        format!(".{digest}"),
        format!("01.{digest}"),
        format!("+1.{digest}"),
        format!("-1.{digest}"),
        format!("0.{digest}"),
        format!("1.{}", digest.to_uppercase()),
        format!("1.{digest}0"),
        format!("1.{digest}.1"),
        format!(" 1.{digest}"),
        format!("{}.{digest}", 1_u64 << 63),
        format!("1{zeros}.{digest}"),
    ] {
        assert_eq!(bad.parse::<SshCursor>(), Err(SshCursorError), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_cursor_only_in_its_one_spelling(text in "[0-9a-f.]{0,80}|.{0,80}") {
        if let Ok(cursor) = text.parse::<SshCursor>() {
            prop_assert_eq!(cursor.to_string(), text);
        }
    }
}
