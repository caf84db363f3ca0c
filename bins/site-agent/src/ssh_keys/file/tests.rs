use super::*;
use proptest::prelude::*;

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIIq0FswFZ8OL+YrfKI7fSR87uGqP9oBgWHWbOnvfcEc";

fn time(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn held(ends: Option<i64>) -> HeldKey {
    HeldKey::new(PublicKey::parse(KEY).unwrap(), ends.map(time))
}

fn file(ends: &[Option<i64>], lease: i64) -> UserFile {
    let ids = (1..).map(|byte| KeyId::from_bytes([byte; 16]));
    UserFile::new(ids.zip(ends.iter().map(|ends| held(*ends))).collect(), time(lease))
}

#[test]
fn a_file_has_the_mark_and_a_line_for_each_key_with_the_earlier_end() {
    let [first, second] = [1, 2].map(|byte| KeyId::from_bytes([byte; 16]).as_str().to_owned());
    let text = file(&[None, Some(60)], 1_900_000_000).to_string();
    assert_eq!(
        text,
        format!(
            "# site-control: managed by site-agent ssh-keys; do not edit\n\
             expiry-time=\"20300317174640Z\",restrict,pty {KEY} {first}\n\
             # {second} ends 19700101000100Z\n\
             expiry-time=\"19700101000100Z\",restrict,pty {KEY} {second}\n"
        )
    );
}

#[test]
fn a_key_that_ends_after_the_lease_keeps_its_end() {
    let text = file(&[Some(2_000)], 1_000).to_string();
    assert!(text.contains("expiry-time=\"19700101001640Z\""), "{text}");
    let read = UserFile::parse(text.as_bytes()).unwrap();
    let longer = UserFile::new(read.keys, time(3_000)).to_string();
    assert!(longer.contains("expiry-time=\"19700101003320Z\""), "{longer}");
}

#[test]
fn a_part_of_a_second_is_cut_off_and_never_added() {
    let half: DateTime<Utc> = "2030-01-01T00:00:00.999999Z".parse().unwrap();
    let key = PublicKey::parse(KEY).unwrap();
    let held = HeldKey::new(key, Some(half));
    assert_eq!(held.ends, Some("2030-01-01T00:00:00Z".parse().unwrap()));
    assert_eq!(UserFile::new(Keys::new(), half).lease, held.ends.unwrap());
}

#[test]
fn what_somebody_has_edited_is_not_taken() {
    let text = file(&[None, Some(60)], 1_900_000_000).to_string();
    let edits: [fn(&str) -> String; 9] = [
        |text| text.replace("restrict,pty", "restrict,pty,agent-forwarding"),
        |text| format!("{text}\n"),
        |text| format!("{text}# a remark\n"),
        |text| text.trim_end().to_owned(),
        |text| text.replace('\n', "\r\n"),
        |text| text.replacen("20300317174640Z", "20300317174641Z", 1).replace(" ends ", " Ends "),
        |text| text.replace("19700101000100Z\"", "19700101000101Z\""),
        |text| text.lines().filter(|l| !l.contains(" ends ")).map(|l| format!("{l}\n")).collect(),
        |text| {
            let lines: Vec<_> = text.lines().collect();
            [lines[0], lines[2], lines[3], lines[1]].map(|line| format!("{line}\n")).concat()
        },
    ];
    for (number, edit) in edits.iter().enumerate() {
        let edited = edit(&text);
        assert_ne!(edited, text);
        assert_eq!(UserFile::parse(edited.as_bytes()), None, "edit {number}: {edited}");
    }
    assert_eq!(UserFile::parse(format!("{MANAGED_MARK}\n").as_bytes()), None, "no key");
}

#[test]
fn the_mark_is_the_whole_first_line() {
    assert!(UserFile::is_marked(format!("{MANAGED_MARK}\nanything").as_bytes()));
    for other in ["", MANAGED_MARK, &format!("{MANAGED_MARK} \n"), &format!("\n{MANAGED_MARK}\n")] {
        assert!(!UserFile::is_marked(other.as_bytes()), "{other:?}");
    }
}

#[test]
fn the_largest_file_is_below_the_bound() {
    // Longer than any key that is taken.
    let line = PublicKey::MAX_BYTES + "expiry-time=\"20300317174640Z\",restrict,pty  \n".len() + 30;
    let comment = "# key_00000000000000000000000000 ends 20300317174640Z\n".len();
    let largest = MANAGED_MARK.len() + 1 + MAX_KEYS * (line + comment);
    assert!(largest as u64 <= MAX_FILE_BYTES);
}

proptest! {
    #[test]
    fn a_file_says_the_same_when_it_is_read_back(
        ends in prop::collection::vec(prop::option::of(0_i64..4_000_000_000), 1..6),
        lease in 0_i64..4_000_000_000,
    ) {
        let written = file(&ends, lease);
        let read = UserFile::parse(written.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&read.keys, &written.keys);
        prop_assert!(read.lease <= written.lease);
        prop_assert_eq!(read.to_string(), written.to_string());
        for line in written.to_string().lines().filter(|line| !line.starts_with('#')) {
            let until = AuthorizedLine::parse(line).unwrap().until();
            prop_assert!(until <= time(lease));
        }
    }

    #[test]
    fn any_bytes_are_a_file_only_where_they_were_written_here(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let marked = [format!("{MANAGED_MARK}\n").as_bytes(), &bytes].concat();
        prop_assert_eq!(UserFile::parse(&marked), None);
    }
}
