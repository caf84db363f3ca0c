//! The OpenSSH server of tests: who is let in is what the shipped snippet says, and nothing of the
//! machine is changed.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::Path,
};

use test_support::openssh::{Login, Search, SshKey, Sshd, SshdError, SshdSetup};

fn snippet() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/ssh/site-agent.conf");
    fs::read_to_string(path).unwrap()
}

/// A server with the shipped snippet for two users, the second of whom administers.
async fn server() -> Sshd {
    Search::of_this_process().find_or_install(|what| eprintln!("{what}")).unwrap();
    let users = ["ada", "boss"].map(str::to_owned).to_vec();
    let administrators = vec!["boss".to_owned()];
    Sshd::start(&SshdSetup { snippet: snippet(), users, administrators }).await.unwrap()
}

/// A line of a user's file, good until a time.
fn line(until: &str, key: &SshKey) -> String {
    format!("expiry-time=\"{until}\",restrict,pty {} a-key\n", key.public())
}

#[tokio::test]
async fn a_key_in_the_users_file_lets_its_user_in_until_it_is_taken_out() {
    let (sshd, keys) = (server().await, tempfile::tempdir().unwrap());
    let (mine, other) =
        (SshKey::make(keys.path(), "mine").unwrap(), SshKey::make(keys.path(), "other").unwrap());
    let file = sshd.keys_folder().join("ada");
    fs::write(&file, line("20990101000000Z", &mine)).unwrap();
    assert_eq!(sshd.log_in("ada", &mine).await.unwrap(), Login::LetIn);
    assert_eq!(sshd.log_in("ada", &other).await.unwrap(), Login::Refused);
    assert_eq!(sshd.log_in("boss", &mine).await.unwrap(), Login::Refused);
    assert_eq!(sshd.log_in("nobody-at-all", &mine).await.unwrap(), Login::Refused);
    fs::write(&file, line("20200101000000Z", &mine)).unwrap();
    assert_eq!(sshd.log_in("ada", &mine).await.unwrap(), Login::Refused, "its time is over");
    fs::remove_file(&file).unwrap();
    assert_eq!(sshd.log_in("ada", &mine).await.unwrap(), Login::Refused);
}

#[tokio::test]
async fn a_file_in_the_home_lets_an_administrator_in_and_nobody_else() {
    let (sshd, keys) = (server().await, tempfile::tempdir().unwrap());
    let key = SshKey::make(keys.path(), "key").unwrap();
    for user in ["ada", "boss"] {
        let (home, folder) = (sshd.home(user), sshd.home(user).join(".ssh"));
        let owner = fs::metadata(&home).unwrap();
        let file = folder.join("authorized_keys");
        fs::create_dir(&folder).unwrap();
        fs::write(&file, format!("{}\n", key.public())).unwrap();
        for path in [&folder, &file] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
            chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }
    assert_eq!(sshd.log_in("ada", &key).await.unwrap(), Login::Refused);
    assert_eq!(sshd.log_in("boss", &key).await.unwrap(), Login::LetIn);
}

#[tokio::test]
async fn what_the_snippet_says_is_what_holds() {
    let sshd = server().await;
    for (user, file) in [("ada", "/etc/ssh/site-agent/%u"), ("boss", ".ssh/authorized_keys")] {
        let settings = sshd.settings_for(user).await.unwrap();
        for setting in [
            &format!("authorizedkeysfile {file}"),
            "authorizedkeyscommand none",
            "trustedusercakeys none",
            "strictmodes yes",
            "pubkeyauthentication yes",
        ] {
            assert!(
                settings.iter().any(|line| line == setting),
                "{user}: {setting}\n{settings:#?}"
            );
        }
    }
}

#[tokio::test]
async fn a_snippet_that_sshd_does_not_take_is_told() {
    Search::of_this_process().find_or_install(|what| eprintln!("{what}")).unwrap();
    let setup = SshdSetup { snippet: "AuthorizedKeysFiles x\n".to_owned(), ..SshdSetup::default() };
    let refused = Sshd::start(&setup).await.err().unwrap();
    let SshdError::Refused { question, said } = &refused else { panic!("{refused}") };
    assert!(question == "-t" && said.contains("Bad configuration option"), "{refused}");
}

#[tokio::test]
async fn nothing_of_the_machine_is_changed_and_nothing_is_left() {
    let seen = || {
        let names = |folder: &str| {
            let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        };
        let users =
            ["/etc/passwd", "/etc/shadow", "/etc/group"].map(|file| fs::read(file).unwrap());
        // Other tests mount something too, elsewhere.
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let here = mounts.lines().filter(|line| line.contains(" /etc") || line.contains(" /run"));
        let mounts: Vec<_> = here.map(str::to_owned).collect();
        (users, names("/etc/ssh"), names("/run"), mounts)
    };
    Search::of_this_process().find_or_install(|what| eprintln!("{what}")).unwrap();
    let before = seen();
    let sshd = server().await;
    assert_eq!(seen(), before, "while it runs");
    let folder = sshd.keys_folder();
    drop(sshd);
    assert_eq!(seen(), before);
    assert!(!folder.exists());
}
