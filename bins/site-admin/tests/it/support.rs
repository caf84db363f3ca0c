//! Running the program, and what it leaves.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, PipeWriter, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;
use test_support::{TestDatabase, bin};
use tokio_postgres::Client;

pub(crate) const PRODUCER: &str = "SITE_COORDINATION_PRODUCER_DATABASE_URL";
pub(crate) const API: &str = "SITE_COORDINATION_DATABASE_URL";
pub(crate) const KEEPER: &str = "SITE_COORDINATION_KEEPER_DATABASE_URL";
pub(crate) const OWNER: &str = "SITE_COORDINATION_OWNER_DATABASE_URL";

pub(crate) const RUNS_OWNER: &str = "EXECUTION_CORE_OWNER_DATABASE_URL";
pub(crate) const RUNS_API: &str = "EXECUTION_CORE_DATABASE_URL";
pub(crate) const RUNS_WRITER: &str = "EXECUTION_CORE_WRITER_DATABASE_URL";
pub(crate) const BINDINGS_OWNER: &str = "RESOURCE_PROVISIONING_OWNER_DATABASE_URL";
pub(crate) const BINDINGS_API: &str = "RESOURCE_PROVISIONING_DATABASE_URL";
pub(crate) const BINDINGS_WRITER: &str = "RESOURCE_PROVISIONING_WRITER_DATABASE_URL";
pub(crate) const KEYS_OWNER: &str = "SSH_ACCESS_OWNER_DATABASE_URL";
pub(crate) const KEYS_API: &str = "SSH_ACCESS_DATABASE_URL";
pub(crate) const KEYS_PROCESS: &str = "SSH_ACCESS_PROCESS_DATABASE_URL";
pub(crate) const KEYS_REGISTRY: &str = "SSH_ACCESS_REGISTRY_DATABASE_URL";

pub(crate) const ADMINISTRATOR: &str = "SITE_CONTROL_ADMIN_DATABASE_URL";

/// What the program did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// What it printed, as it must have succeeded.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// Checks that it failed with this code, printed no result, and said this.
    pub(crate) fn refused(&self, code: i32, said: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(said), "{said:?} is not in {self:?}");
        assert_eq!(self.out, "", "{self:?}");
    }
}

/// The program with arguments and settings, to be run.
pub(crate) struct Admin {
    command: Command,
    input: Vec<u8>,
    output: Stdio,
    errors: Stdio,
}

/// The program with arguments.
pub(crate) fn admin(arguments: &[&str]) -> Admin {
    let mut command = Command::new(bin("site-admin"));
    command.args(arguments);
    Admin { command, input: Vec::new(), output: Stdio::piped(), errors: Stdio::piped() }
}

/// The program with arguments, which can't write more than 512 bytes (1,024 under some shells) to
/// any file: the first that is larger ends as on a disk that is full.
pub(crate) fn admin_on_a_full_disk(arguments: &[&str]) -> Admin {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]);
    command.arg(bin("site-admin")).args(arguments);
    Admin { command, ..admin(&[]) }
}

impl Admin {
    pub(crate) fn with(mut self, setting: &str, value: &str) -> Self {
        self.command.env(setting, value);
        self
    }

    pub(crate) fn input(mut self, input: &[u8]) -> Self {
        self.input = input.to_vec();
        self
    }

    /// Has it print its results there; then `out` stays empty.
    pub(crate) fn output(mut self, output: impl Into<Stdio>) -> Self {
        self.output = output.into();
        self
    }

    /// As [`Admin::output`], for everything else.
    pub(crate) fn errors(mut self, errors: impl Into<Stdio>) -> Self {
        self.errors = errors.into();
        self
    }

    pub(crate) fn run(self) -> Done {
        let Self { mut command, input, output, errors } = self;
        let mut child =
            command.stdin(Stdio::piped()).stdout(output).stderr(errors).spawn().unwrap();
        drop(command);
        let mut stdin = child.stdin.take().unwrap();
        // On a thread, as the program may answer before it has read everything, or read nothing.
        let writing = std::thread::spawn(move || stdin.write_all(&input).is_ok());
        let output = child.wait_with_output().unwrap();
        let _read_whole = writing.join().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

/// A file that is always full.
pub(crate) fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// A pipe that nobody reads.
pub(crate) fn unread() -> PipeWriter {
    let (_reader, writer) = io::pipe().unwrap();
    writer
}

/// A migrated database with an administrator of the stream `slurm` of the Site `north-1`.
pub(crate) struct Stream {
    pub(crate) database: TestDatabase,
}

impl Stream {
    pub(crate) async fn create() -> Self {
        Self { database: TestDatabase::create().await }
    }

    pub(crate) fn url(&self) -> String {
        self.database.url("site_coordination_producer")
    }

    /// `site-admin commands <command> --site north-1 --environment slurm <more>`.
    pub(crate) fn commands(&self, command: &str, more: &[&str]) -> Admin {
        let stream = ["commands", command, "--site", "north-1", "--environment", "slurm"];
        admin(&[&stream, more].concat()).with(PRODUCER, &self.url())
    }

    /// Enqueues one command of the kind `test` with a body from the standard input.
    pub(crate) fn enqueue(&self, key: &str, body: &[u8]) -> Done {
        let one = ["--key", key, "--kind", "test", "--body", "-"];
        self.commands("enqueue", &one).input(body).run()
    }

    pub(crate) async fn sql(&self) -> Client {
        self.database.superuser().await
    }

    /// How many commands there are.
    pub(crate) async fn count(&self) -> i64 {
        let count = "SELECT count(*) FROM site_coordination.command";
        self.sql().await.query_one(count, &[]).await.unwrap().get(0)
    }
}

/// A folder for a grants file.
pub(crate) struct Grants {
    pub(crate) folder: TempDir,
}

impl Grants {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("grants.json")
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    pub(crate) fn issue(&self, more: &[&str]) -> Done {
        self.command(more).run()
    }

    /// `site-admin credentials <command> --grants <the file> <more>`.
    pub(crate) fn credentials(&self, command: &str, more: &[&str]) -> Admin {
        let path = self.path().display().to_string();
        admin(&[&["credentials", command, "--grants", &path], more].concat())
    }

    /// The grant at a place of the file.
    pub(crate) fn grant(&self, index: usize) -> Value {
        let file: Value = serde_json::from_str(&self.text()).unwrap();
        file["grants"][index].clone()
    }

    pub(crate) fn command(&self, more: &[&str]) -> Admin {
        self.credentials("issue", more)
    }

    pub(crate) fn on_a_full_disk(&self, more: &[&str]) -> Done {
        let path = self.path().display().to_string();
        let issue = ["credentials", "issue", "--grants", &path];
        admin_on_a_full_disk(&[&issue, more].concat()).run()
    }
}

/// What makes a bearer that of the Runtime `slurm` of the Site `north-1`.
pub(crate) const RUNTIME: [&str; 6] =
    ["--scope", "commands", "--site", "north-1", "--environment", "slurm"];

/// The names of the files in a folder, in order.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The permission bits of a file.
pub(crate) fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o7777
}

/// The password in a URL.
pub(crate) fn password(url: &str) -> &str {
    url.split_once('@').unwrap().0.rsplit_once(':').unwrap().1
}
