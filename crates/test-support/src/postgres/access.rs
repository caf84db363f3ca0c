//! How to reach a running cluster, and the file in which `cargo xtask` tells the tests.

use std::{
    collections::BTreeMap,
    env, fmt, fs, io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tokio_postgres::{Client, NoTls};

use super::Installation;

/// Names the file that [`Access::write_to`] wrote.
pub const TEST_POSTGRES: &str = "SITE_CONTROL_TEST_POSTGRES";

/// Where a cluster listens and who may come in.
#[derive(Clone, Serialize, Deserialize)]
pub struct Access {
    /// The programs that run it, for a test that wants a cluster of its own.
    pub installation: Installation,
    /// The folder of its unix socket.
    pub socket_folder: PathBuf,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The certificate of the authority that issued its server certificate.
    pub ca_file: PathBuf,
    /// The password of the superuser `postgres`.
    pub superuser_password: String,
    /// The migrated database that tests clone; none before it is made.
    pub template: Option<String>,
    /// The passwords of the restricted roles.
    pub role_passwords: BTreeMap<String, String>,
}

impl Access {
    /// Reads the file that [`TEST_POSTGRES`] names.
    ///
    /// # Panics
    ///
    /// When the variable is not set or the file can't be read, naming the command that prepares it.
    #[expect(clippy::disallowed_methods, reason = "the one variable that a test process reads")]
    pub fn of_this_test() -> Self {
        let Some(file) = env::var_os(TEST_POSTGRES) else {
            panic!(
                "{TEST_POSTGRES} is not set: run `cargo xtask test`, or keep `cargo xtask postgres` running and \
                 export what it prints"
            );
        };
        Self::read_from(Path::new(&file)).unwrap_or_else(|error| {
            panic!("{TEST_POSTGRES}={}: {error}; run `cargo xtask test`", file.display())
        })
    }

    /// Reads what [`Access::write_to`] wrote.
    ///
    /// # Errors
    ///
    /// When the file can't be read or holds something else.
    pub fn read_from(file: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(file)?)?)
    }

    /// Writes it for other processes of this user.
    ///
    /// # Errors
    ///
    /// When the file can't be made, or is there already.
    pub fn write_to(&self, file: &Path) -> io::Result<()> {
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
        Ok(serde_json::to_writer(file, self)?)
    }

    /// The URL of a database for a role, with a verified TLS connection over TCP.
    pub fn url(&self, role: &str, password: &str, database: &str) -> String {
        format!(
            "postgres://{role}:{password}@127.0.0.1:{}/{database}?sslmode=verify-full&sslrootcert={}",
            self.port,
            self.ca_file.display()
        )
    }

    /// The URL of a database for the superuser.
    pub fn superuser_url(&self, database: &str) -> String {
        self.url("postgres", &self.superuser_password, database)
    }

    /// The URL of a database for one of the roles that the template's migration made.
    ///
    /// # Panics
    ///
    /// When there is no such role.
    pub fn role_url(&self, role: &str, database: &str) -> String {
        let Some(password) = self.role_passwords.get(role) else {
            let known: Vec<_> = self.role_passwords.keys().collect();
            panic!("no role {role}; the migrated template has {known:?}");
        };
        self.url(role, password, database)
    }

    /// A superuser's connection by the unix socket, for administration only: what is tested goes by
    /// TLS.
    ///
    /// # Errors
    ///
    /// When the server does not answer or refuses.
    pub async fn superuser(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::Config::new()
            .host_path(&self.socket_folder)
            .port(self.port)
            .user("postgres")
            .password(&self.superuser_password)
            .dbname(database)
            .application_name("test-support")
            .connect(NoTls)
            .await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("port", &self.port)
            .field("template", &self.template)
            .finish_non_exhaustive()
    }
}

/// 24 random bytes in hex: nothing in it needs escaping in a URL or in SQL.
#[expect(clippy::disallowed_methods, reason = "a password that ends with its cluster")]
pub(super) fn new_password() -> String {
    let random = ring::rand::SystemRandom::new();
    let bytes: [u8; 24] =
        ring::rand::generate(&random).expect("the system gives random bytes").expose();
    hex::encode(bytes)
}
