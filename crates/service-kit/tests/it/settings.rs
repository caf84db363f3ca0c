use std::{
    ffi::OsString,
    fs,
    net::SocketAddr,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use secrecy::ExposeSecret;
use service_kit::{Settings, SettingsErrors};

fn settings(pairs: &[(&str, &str)]) -> Settings {
    Settings::from_pairs(pairs.iter().copied())
}

/// The lines of the report.
fn lines(settings: Settings) -> Vec<String> {
    settings.finish().unwrap_err().to_string().lines().map(str::to_owned).collect()
}

/// A file of the given content in a folder that lives as long as the guard.
fn file(content: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("value");
    fs::write(&path, content).unwrap();
    let path = path.into_os_string().into_string().unwrap();
    (folder, path)
}

#[test]
fn a_value_is_parsed_and_an_absent_one_is_none() {
    let mut settings = settings(&[("LISTEN", "127.0.0.1:1")]);
    let address = settings.required("LISTEN", str::parse::<SocketAddr>);
    assert_eq!(address, Some(([127, 0, 0, 1], 1).into()));
    assert_eq!(settings.optional("ABSENT", str::parse::<u8>), None);
    assert_eq!(settings.or_default("ABSENT", 7, str::parse::<u8>), 7);
    assert_eq!(settings.finish(), Ok(()));
}

#[test]
fn a_value_may_come_from_a_file_without_its_one_trailing_newline() {
    for (content, value) in
        [("x", "x"), ("x\n", "x"), ("x\r\n", "x"), ("x\n\n", "x\n"), (" x ", " x "), ("\nx", "\nx")]
    {
        let (_folder, path) = file(content.as_bytes());
        let mut settings = settings(&[("NAME_FILE", &path)]);
        let read = settings.required("NAME", |text| Ok::<_, String>(text.to_owned()));
        assert_eq!(read.as_deref(), Some(value), "{content:?}");
        assert_eq!(settings.finish(), Ok(()));
    }
}

#[test]
fn a_setting_that_is_made_twice_is_a_mistake() {
    let (_folder, path) = file(b"1");
    let mut settings = settings(&[("NAME", "1"), ("NAME_FILE", &path)]);
    assert_eq!(settings.required("NAME", str::parse::<u8>), None);
    assert_eq!(lines(settings), ["NAME: is set, and so is NAME_FILE"]);
}

#[test]
fn an_empty_value_is_a_mistake_and_not_an_absent_one() {
    let (_folder, path) = file(b"\n");
    let mut settings = settings(&[("A", ""), ("B_FILE", ""), ("C_FILE", &path), ("D", "")]);
    assert_eq!(settings.optional("A", str::parse::<u8>), None);
    assert_eq!(settings.or_default("B", 1, str::parse::<u8>), 1);
    assert!(settings.optional_secret("C").is_none());
    assert_eq!(settings.optional_path("D"), None);
    assert_eq!(
        lines(settings),
        ["A: is empty", "B_FILE: is empty", "C_FILE: is empty", "D: is empty"]
    );
}

#[test]
fn what_is_not_utf8_is_a_mistake() {
    let (_folder, path) = file(&[0xff, 0xfe]);
    let mut settings = Settings::from_pairs([
        ("A", OsString::from_vec(vec![0xff])),
        ("B_FILE", OsString::from(&path)),
    ]);
    assert_eq!(settings.optional("A", str::parse::<u8>), None);
    assert_eq!(settings.optional("B", str::parse::<u8>), None);
    assert_eq!(
        lines(settings),
        ["A: is not UTF-8".to_owned(), format!("B_FILE: {path} is not UTF-8")]
    );
}

#[test]
fn a_file_that_is_not_there_or_without_measure_is_a_mistake() {
    let (_folder, path) = file(&vec![b'x'; 1024 * 1024 + 1]);
    let mut settings = settings(&[("A_FILE", "/nowhere/at/all"), ("B_FILE", &path)]);
    assert!(settings.required_secret("A").is_none());
    assert!(settings.required_secret("B").is_none());
    assert_eq!(
        lines(settings),
        [
            "A_FILE: can't read /nowhere/at/all: entity not found".to_owned(),
            format!("B_FILE: {path} has more than 1048576 bytes"),
        ]
    );
}

#[test]
fn every_mistake_is_told_in_a_line_of_its_own() {
    let mut settings = settings(&[("PORT", "eighty"), ("ON", "yes"), ("OTHER", "1")]);
    assert_eq!(settings.or_default("PORT", 80, str::parse::<u16>), 80);
    assert_eq!(settings.required("URL", |text| Ok::<_, String>(text.to_owned())), None);
    assert!(settings.required_secret("KEY").is_none());
    assert_eq!(settings.required_path("CERT"), None);
    assert_eq!(settings.optional("ON", str::parse::<bool>), None);
    settings.mistake("ON", "needs OTHER to be 2");
    assert_eq!(
        lines(settings),
        [
            "PORT: invalid digit found in string",
            "URL: is not set, and neither is URL_FILE",
            "KEY: is not set, and neither is KEY_FILE",
            "CERT: is not set",
            "ON: provided string was not `true` or `false`",
            "ON: needs OTHER to be 2",
        ]
    );
}

#[test]
fn a_secret_is_read_from_both_places_and_shown_nowhere() {
    let (_folder, path) = file(b"hunter2\n");
    let mut settings = settings(&[("A", "hunter1"), ("B_FILE", &path)]);
    let (a, b) = (settings.required_secret("A").unwrap(), settings.required_secret("B").unwrap());
    assert_eq!((a.expose_secret(), b.expose_secret()), ("hunter1", "hunter2"));
    assert!(!format!("{a:?} {b:?}").contains("hunter"));
}

#[test]
fn no_value_of_a_secret_is_in_a_mistake() {
    let (_folder, path) = file(b"hunter2\n");
    let mut settings = settings(&[
        ("A", "hunter2"),
        ("B_FILE", &path),
        ("C", "hunter2"),
        ("C_FILE", &path),
        ("D", "hunter2"),
    ]);
    let refuse = |_: &str| Err::<(), _>("must be 64 hexadecimal characters");
    assert_eq!(settings.required_secret_as("A", refuse), None);
    assert_eq!(settings.optional_secret_as("B", refuse), None);
    assert!(settings.required_secret("C").is_none());
    assert_eq!(settings.optional_secret_as("D", |text| Ok(text.len())), Some(7));
    let errors: SettingsErrors = settings.finish().unwrap_err();
    assert_eq!(errors.mistakes().len(), 3);
    assert!(!format!("{errors} {errors:?}").contains("hunter"), "{errors}");
}

#[test]
fn a_setting_that_is_a_path_is_not_read() {
    let mut settings = settings(&[("CERT_FILE", "/nowhere/cert.pem"), ("KEY_FILE_FILE", "/x")]);
    assert_eq!(settings.required_path("CERT_FILE"), Some(PathBuf::from("/nowhere/cert.pem")));
    assert_eq!(settings.optional_path("KEY_FILE"), None);
    assert_eq!(settings.finish(), Ok(()));
}

#[test]
fn a_variable_that_nobody_asks_for_is_no_mistake() {
    let settings = settings(&[("SITE_API_OF_ANOTHER_PROCESS", ""), ("PATH", "/bin")]);
    assert_eq!(settings.finish(), Ok(()));
}

#[test]
fn what_is_put_together_is_accepted_only_without_a_mistake() {
    let mut good = settings(&[("A", "1")]);
    let value = good.required("A", str::parse::<u8>);
    assert_eq!(good.accept(value), Ok(1));

    let mut wrong = settings(&[("A", "1")]);
    let value = wrong.required("A", str::parse::<u8>);
    wrong.required("B", str::parse::<u8>);
    assert_eq!(wrong.accept(value).unwrap_err().mistakes().len(), 1);

    assert_eq!(settings(&[]).accept(None::<u8>).unwrap_err().mistakes().len(), 1);
}

#[test]
fn the_real_environment_is_read() {
    let mut settings = Settings::from_process();
    let manifest = settings.required_path("CARGO_MANIFEST_DIR").unwrap();
    assert_eq!(manifest, Path::new(env!("CARGO_MANIFEST_DIR")));
}

#[test]
fn variables_of_a_prefix_that_nobody_asked_for_are_known() {
    let pairs = [("A_ONE", "1"), ("A_TWO_FILE", "/none"), ("A_THREE", "3"), ("A_FOUR", "4")];
    let mut settings = settings(&[&pairs[..], &[("B_FIVE", "5"), ("A_SIX_FILE", "")]].concat());
    settings.optional("A_ONE", str::parse::<u8>);
    settings.optional("A_TWO", str::parse::<u8>);
    settings.optional_path("A_SIX");
    assert!(settings.is_set("A_FOUR"));
    assert_eq!(settings.unasked("A_"), ["A_SIX_FILE", "A_THREE"]);
}
