//! One database a test, cloned from the migrated template.

use std::{thread, time::Duration};

use tokio::time::Instant;
use tokio_postgres::{Client, error::SqlState};

use super::{Access, Cluster, access::new_password};

/// One clone took 39 seconds on a machine under load.
const CLONE_WITHIN: Duration = Duration::from_secs(180);

/// A migrated database of one's own, dropped with the value.
pub struct TestDatabase {
    access: Access,
    name: String,
}

impl TestDatabase {
    /// Clones the template of the cluster that `cargo xtask test` runs.
    ///
    /// # Panics
    ///
    /// When there is no such cluster, or it does not clone.
    pub async fn create() -> Self {
        Self::create_by(Access::of_this_test()).await
    }

    /// Clones the template of a cluster of one's own.
    ///
    /// # Panics
    ///
    /// When it has no template, or does not clone.
    pub async fn create_in(cluster: &Cluster) -> Self {
        Self::create_by(cluster.access().clone()).await
    }

    /// Clones a migrated database of a cluster of one's own, to which nobody is connected.
    ///
    /// # Panics
    ///
    /// When there is none of the name, or it is not cloned.
    pub async fn copy_of(cluster: &Cluster, name: &str) -> Self {
        let template = Some(name.to_owned());
        Self::create_by(Access { template, ..cluster.access().clone() }).await
    }

    async fn create_by(access: Access) -> Self {
        let template = access.template.clone().expect("the cluster has a migrated template");
        let name = new_name();
        let admin = access.superuser("postgres").await.expect("the test cluster answers");
        clone_template(&admin, &template, &name).await;
        let database = Self { access, name };
        admin.batch_execute(&database.rights()).await.expect("the superuser may grant");
        database
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The URL for one of the restricted roles, with a verified TLS connection.
    ///
    /// # Panics
    ///
    /// When the migrations make no such role.
    pub fn url(&self, role: &str) -> String {
        self.access.role_url(role, &self.name)
    }

    /// The URL for the superuser, whom no service ever is.
    pub fn superuser_url(&self) -> String {
        self.access.superuser_url(&self.name)
    }

    /// A superuser's connection, to look at what the code under test has left or to break it on
    /// purpose.
    ///
    /// # Panics
    ///
    /// When the cluster does not answer.
    pub async fn superuser(&self) -> Client {
        self.access.superuser(&self.name).await.expect("the test cluster answers")
    }

    /// A copy of it as it is now, as a backup would hold it. Ends every connection to it, and lets
    /// nobody in meanwhile.
    ///
    /// # Panics
    ///
    /// When the cluster does not copy it.
    pub async fn backup(&self) -> Self {
        let admin = self.access.superuser("postgres").await.expect("the test cluster answers");
        let backup = Self { access: self.access.clone(), name: new_name() };
        let open = |open: bool| format!("ALTER DATABASE {} ALLOW_CONNECTIONS {open}", self.name);
        admin.batch_execute(&open(false)).await.expect("the superuser may close it");
        self.end_connections(&admin).await;
        clone_template(&admin, &self.name, &backup.name).await;
        admin.batch_execute(&open(true)).await.expect("the superuser may open it");
        backup
    }

    /// Puts a backup in its place. Ends every connection to it.
    ///
    /// # Panics
    ///
    /// When the cluster does not copy the backup.
    pub async fn restore(&self, backup: &Self) {
        let admin = self.access.superuser("postgres").await.expect("the test cluster answers");
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        admin.batch_execute(&drop).await.expect("the superuser may drop it");
        clone_template(&admin, &backup.name, &self.name).await;
        admin.batch_execute(&self.rights()).await.expect("the superuser may grant");
    }

    async fn end_connections(&self, admin: &Client) {
        let sql = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1";
        admin.query(sql, &[&self.name]).await.expect("the superuser may end them");
    }

    /// A database's own grants don't come along with a clone.
    fn rights(&self) -> String {
        let Self { access, name } = self;
        let mut sql = format!("REVOKE ALL ON DATABASE {name} FROM PUBLIC;");
        for role in access.role_passwords.keys() {
            let rights = if role.ends_with("_owner") { "CONNECT, CREATE" } else { "CONNECT" };
            sql.push_str(&format!("GRANT {rights} ON DATABASE {name} TO {role};"));
        }
        sql
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (access, name) = (self.access.clone(), self.name.clone());
        // A runtime of its own: the test's may be the one that is going down. Best effort: the
        // cluster may have been killed by the test, and goes as a whole in the end.
        let dropped = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                if let Ok(admin) = access.superuser("postgres").await {
                    let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                    let _ = admin.batch_execute(&sql).await;
                }
            });
        });
        let _ = dropped.join();
    }
}

fn new_name() -> String {
    format!("test_{}", &new_password()[..20])
}

/// An open connection to the template makes a clone fail after five seconds; it is tried again
/// then.
async fn clone_template(admin: &Client, template: &str, name: &str) {
    let sql = format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY");
    let deadline = Instant::now() + CLONE_WITHIN;
    loop {
        let Err(error) = admin.batch_execute(&sql).await else { return };
        let busy = error.code() == Some(&SqlState::OBJECT_IN_USE);
        assert!(busy && Instant::now() < deadline, "cloning {template}: {error:?}");
    }
}
