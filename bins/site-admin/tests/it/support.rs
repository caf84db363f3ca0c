//! Running the program, and what it leaves.

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use test_support::{TestDatabase, bin};
use tokio_postgres::Client;

pub(crate) const PRODUCER: &str = "SITE_COORDINATION_PRODUCER_DATABASE_URL";
pub(crate) const API: &str = "SITE_COORDINATION_DATABASE_URL";
pub(crate) const OWNER: &str = "SITE_COORDINATION_OWNER_DATABASE_URL";

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
}

/// The program with arguments.
pub(crate) fn admin(arguments: &[&str]) -> Admin {
    let mut command = Command::new(bin("site-admin"));
    command.args(arguments);
    Admin { command, input: Vec::new() }
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

    pub(crate) fn run(mut self) -> Done {
        let piped =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = self.input;
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
