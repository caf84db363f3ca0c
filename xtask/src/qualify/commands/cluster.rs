//! The cluster of the lane, and what is done to it as a whole. Whoever has it does one thing at a
//! time.

use std::time::Duration;

use test_support::{
    Faketime,
    postgres::{Cluster, ClusterError},
};

use super::history::{Moment, Recorder, Restore};

pub(crate) const DATABASE: &str = "site_control";

/// The copy that a restore puts back; there is one.
const BACKUP: &str = "older";

/// How long a question to the server may take that has just been asked.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The cluster, its clock and its backup.
pub(crate) struct Postgres {
    cluster: Cluster,
    recorder: Recorder,
    faketime: Option<Faketime>,
    clock_seconds: i64,
    backup_began: Option<Moment>,
}

/// A process of the server that works for one of our programs or producers.
pub(crate) struct Backend {
    pub(crate) pid: i32,
    pub(crate) role: String,
}

impl Postgres {
    pub(crate) fn new(cluster: Cluster, recorder: Recorder, faketime: Option<Faketime>) -> Self {
        Self { cluster, recorder, faketime, clock_seconds: 0, backup_began: None }
    }

    /// The processes that work for the restricted roles.
    pub(crate) async fn backends(&self) -> Vec<Backend> {
        let sql = "SELECT pid, usename::text FROM pg_stat_activity \
                   WHERE usename LIKE 'site_coordination_%' ORDER BY usename, pid";
        let question = async {
            let admin = self.cluster.superuser(DATABASE).await.ok()?;
            let rows = admin.query(sql, &[]).await.ok()?;
            Some(rows.iter().map(|row| Backend { pid: row.get(0), role: row.get(1) }).collect())
        };
        // A server that does not answer has nobody to meet; the caller looks again.
        tokio::time::timeout(ANSWERS_WITHIN, question).await.ok().flatten().unwrap_or_default()
    }

    /// SIGKILL to all of it at once, and a new start.
    pub(crate) async fn kill(&mut self) -> Result<(), ClusterError> {
        let left = self.left_by_the_server();
        self.cluster.kill();
        forget(left);
        self.cluster.restart().await
    }

    /// SIGSTOP to all of it until `time` is over.
    pub(crate) async fn pause(&self, time: impl Future<Output = ()>) {
        self.cluster.pause();
        time.await;
        self.cluster.resume();
    }

    /// A restart with a clock that is so far ahead. False where that is not possible here.
    pub(crate) async fn set_clock(&mut self, seconds: i64) -> Result<bool, ClusterError> {
        let Some(faketime) = &self.faketime else { return Ok(false) };
        let variables = if seconds == 0 { Vec::new() } else { faketime.variables(seconds) };
        self.cluster.set_variables(variables);
        let left = self.left_by_the_server();
        self.cluster.halt().await;
        forget(left);
        self.recorder.database_clock(Duration::from_secs(seconds.unsigned_abs()), seconds < 0);
        self.clock_seconds = seconds;
        self.cluster.restart().await?;
        Ok(true)
    }

    /// Copies the data while the server is stopped.
    pub(crate) async fn back_up(&mut self) -> Result<(), ClusterError> {
        let left = self.left_by_the_server();
        let began = self.recorder.now();
        self.cluster.back_up(BACKUP).await?;
        self.backup_began = Some(began);
        forget(left);
        Ok(())
    }

    /// Puts the copy in the place of the data. False where there is none yet.
    pub(crate) async fn restore(&mut self) -> Result<bool, ClusterError> {
        let Some(backup_began) = self.backup_began else { return Ok(false) };
        let left = self.left_by_the_server();
        let restore_began = self.recorder.now();
        self.cluster.put_back(BACKUP).await?;
        forget(left);
        let restore_ended = self.recorder.now();
        self.recorder.restore(Restore { backup_began, restore_began, restore_ended });
        self.cluster.restart().await?;
        Ok(true)
    }

    /// Stops it for good.
    pub(crate) async fn stop(&mut self) {
        let left = self.left_by_the_server();
        self.cluster.halt().await;
        forget(left);
    }

    /// The process id under which a server with another clock leaves something behind.
    fn left_by_the_server(&self) -> Option<u32> {
        self.cluster.server_pid().filter(|_| self.clock_seconds != 0)
    }
}

fn forget(server: Option<u32>) {
    if let Some(pid) = server {
        Faketime::forget(pid);
    }
}
