//! Clusters of one's own: they answer, they survive a kill, they leave nothing.

use std::{fs, path::Path, process::Command, time::Duration};

use test_support::{
    Faketime, Process, bin, eventually,
    postgres::{Access, Cluster, Machine, Options},
};

async fn start(durable: bool) -> Cluster {
    Cluster::start(&Access::of_this_test().installation, Options { durable, parent: None })
        .await
        .unwrap()
}

/// Processes whose command line or working folder names this folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let ids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    ids.filter(|process| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let inside = fs::read_link(process.join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(folder) || inside.starts_with(folder)
    })
    .map(|process| process.display().to_string())
    .collect()
}

async fn assert_nothing_is_left(folder: &Path) {
    eventually(Duration::from_secs(30), "the end of every process of the cluster", async || {
        processes_of(folder).is_empty().then_some(())
    })
    .await;
    assert!(!folder.exists(), "{} is still there", folder.display());
}

async fn setting(cluster: &Cluster, name: &str) -> String {
    let client = cluster.superuser("postgres").await.unwrap();
    client.query_one(&format!("SHOW {name}"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_stopped_cluster_leaves_nothing() {
    let cluster = start(false).await;
    let folder = cluster.folder().to_owned();
    assert!(!processes_of(&folder).is_empty());
    cluster.stop().await.unwrap();
    assert_nothing_is_left(&folder).await;
}

#[tokio::test]
async fn a_dropped_cluster_leaves_nothing() {
    let cluster = start(false).await;
    let folder = cluster.folder().to_owned();
    drop(cluster);
    assert_nothing_is_left(&folder).await;
}

#[tokio::test]
async fn a_killed_cluster_that_is_dropped_leaves_nothing() {
    let mut cluster = start(false).await;
    let folder = cluster.folder().to_owned();
    let lock = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let memory = lock.lines().nth(6).unwrap().split_whitespace().nth(1).unwrap().to_owned();
    let segment = || {
        let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap();
        segments.lines().any(|line| line.split_whitespace().nth(1) == Some(memory.as_str()))
    };
    cluster.kill();
    assert!(segment(), "a kill leaves the segment behind, or this test looks at the wrong one");
    drop(cluster);
    assert_nothing_is_left(&folder).await;
    assert!(!segment(), "the shared memory {memory} is still there");
}

#[tokio::test]
async fn a_killed_cluster_comes_back_with_what_was_committed() {
    let mut cluster = start(true).await;
    let client = cluster.superuser("postgres").await.unwrap();
    client.batch_execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)").await.unwrap();
    let port = cluster.access().port;

    // A backend that computes does not notice by itself that its server is gone.
    let busy = cluster.superuser("postgres").await.unwrap();
    let busy = tokio::spawn(async move {
        let endless = "SELECT count(*) FROM generate_series(1, 1000000000000)";
        busy.query_one(endless, &[]).await.is_err()
    });
    let running =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM gen%'";
    eventually(Duration::from_secs(60), "the busy backend", async || {
        let count: i64 = client.query_one(running, &[]).await.unwrap().get(0);
        (count == 1).then_some(())
    })
    .await;

    cluster.kill();
    assert_eq!(processes_of(cluster.folder()), Vec::<String>::new());
    assert!(client.query_one("SELECT 1", &[]).await.is_err());
    assert!(busy.await.unwrap());

    cluster.restart().await.unwrap();
    assert_eq!(cluster.access().port, port);
    let client = cluster.superuser("postgres").await.unwrap();
    let kept: i32 = client.query_one("SELECT n FROM kept", &[]).await.unwrap().get(0);
    assert_eq!(kept, 7);
}

#[tokio::test]
async fn a_running_cluster_restarts() {
    let mut cluster = start(false).await;
    cluster.restart().await.unwrap();
    assert_eq!(setting(&cluster, "ssl").await, "on");
}

/// The rows of the table `kept`, the oldest first.
async fn kept(cluster: &Cluster) -> Vec<i32> {
    let client = cluster.superuser("postgres").await.unwrap();
    let rows = client.query("SELECT n FROM kept ORDER BY n", &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_restored_backup_holds_what_it_held() {
    let mut cluster = start(true).await;
    let insert = async |cluster: &Cluster, sql: &str| {
        cluster.superuser("postgres").await.unwrap().batch_execute(sql).await.unwrap();
    };
    insert(&cluster, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)").await;
    cluster.back_up("one").await.unwrap();
    insert(&cluster, "INSERT INTO kept VALUES (2)").await;
    assert_eq!(kept(&cluster).await, [1, 2]);
    // It can be restored again and again.
    for n in [3, 4] {
        cluster.put_back("one").await.unwrap();
        cluster.restart().await.unwrap();
        assert_eq!(kept(&cluster).await, [1]);
        insert(&cluster, &format!("INSERT INTO kept VALUES ({n})")).await;
    }
    cluster.back_up("one").await.unwrap();
    cluster.put_back("one").await.unwrap();
    cluster.restart().await.unwrap();
    assert_eq!(kept(&cluster).await, [1, 4]);
}

#[tokio::test]
async fn a_paused_cluster_answers_nobody_until_it_goes_on() {
    let cluster = start(false).await;
    let client = cluster.superuser("postgres").await.unwrap();
    cluster.pause();
    let question = tokio::spawn(async move { client.batch_execute("SELECT 1").await });
    let new = tokio::time::timeout(Duration::from_millis(300), cluster.superuser("postgres"));
    assert!(new.await.is_err(), "it takes nobody");
    assert!(!question.is_finished());
    cluster.resume();
    question.await.unwrap().unwrap();
    let folder = cluster.folder().to_owned();
    cluster.pause();
    drop(cluster);
    assert_nothing_is_left(&folder).await;
}

#[tokio::test]
async fn a_cluster_has_another_clock_until_it_has_ours_again() {
    let faketime = Faketime::find_or_install().unwrap();
    let mut cluster = start(false).await;
    for seconds in [3_600, -3_600, 0] {
        let variables = if seconds == 0 { Vec::new() } else { faketime.variables(seconds) };
        cluster.set_variables(variables);
        cluster.restart().await.unwrap();
        let client = cluster.superuser("postgres").await.unwrap();
        let sql = "SELECT extract(epoch FROM clock_timestamp())::bigint";
        let there: i64 = client.query_one(sql, &[]).await.unwrap().get(0);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let off = there - i64::try_from(now).unwrap() - seconds;
        assert!(off.abs() < 60, "{off} s beside {seconds}");
    }
}

#[tokio::test]
async fn only_a_durable_cluster_pays_for_fsync() {
    assert_eq!(setting(&start(false).await, "fsync").await, "off");
    let durable = start(true).await;
    for name in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(setting(&durable, name).await, "on", "{name}");
    }
}

#[tokio::test]
async fn two_clusters_run_side_by_side() {
    let (one, other) = tokio::join!(start(false), start(false));
    assert_ne!(one.access().port, other.access().port);
    assert_eq!(setting(&one, "port").await, one.access().port.to_string());
    assert_eq!(setting(&other, "port").await, other.access().port.to_string());
}

#[tokio::test]
async fn plain_text_over_tcp_and_wrong_passwords_are_refused() {
    let cluster = start(false).await;
    let mut tcp = tokio_postgres::Config::new();
    tcp.host("127.0.0.1").port(cluster.access().port).user("postgres");
    tcp.password(&cluster.access().superuser_password);
    let refused = tcp.connect(tokio_postgres::NoTls).await.err().unwrap();
    let refused = refused.as_db_error().unwrap().message().to_owned();
    assert!(refused.contains("no encryption"), "{refused}");

    let mut access = cluster.access().clone();
    access.superuser_password = "wrong".to_owned();
    let refused = access.superuser("postgres").await.err().unwrap();
    assert_eq!(refused.code().unwrap().code(), "28P01");
}

#[tokio::test]
async fn the_server_ends_with_a_process_that_is_killed() {
    let mut owner = Command::new(std::env::current_exe().unwrap());
    owner.args(["--exact", "cluster::program_that_owns_a_cluster", "--nocapture"]);
    owner.env("TEST_SUPPORT_OWNER", "1");
    let owner = Process::start(owner).unwrap();
    let within = Duration::from_secs(20);
    let line = owner.wait_for_line("the cluster", within, |line| line.starts_with("folder "));
    let line = line.await.unwrap();
    let folder = Path::new(line.strip_prefix("folder ").unwrap());
    assert!(!processes_of(folder).is_empty());
    owner.kill();
    eventually(within, "the end of every process of the cluster", async || {
        processes_of(folder).is_empty().then_some(())
    })
    .await;
    fs::remove_dir_all(folder).unwrap();
}

/// No test: the program of the test above, which starts a cluster and waits to be killed.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "it is told apart from an ordinary run")]
async fn program_that_owns_a_cluster() {
    if std::env::var_os("TEST_SUPPORT_OWNER").is_none() {
        return;
    }
    let cluster = start(false).await;
    eprintln!("folder {}", cluster.folder().display());
    std::future::pending::<()>().await;
}

/// Fetched for real, so it needs the registry once. A machine without npm is told what to do.
#[tokio::test]
async fn the_npm_package_runs_a_cluster_without_debians() {
    let target = bin("site-admin").parent().unwrap().parent().unwrap().to_owned();
    let mut machine = Machine::of_this_process(&target);
    machine.is_root = false;
    machine.search.versions = "/nowhere".into();
    let path = machine.search.path.take().unwrap();
    let npm = std::env::split_paths(&path).find(|folder| folder.join("npm").is_file());
    let alone = tempfile::tempdir().unwrap();
    let Some(npm) = npm else {
        machine.search.path = Some(alone.path().into());
        let refusal = machine.postgres(|_| {}).map(drop).unwrap_err().to_string();
        assert!(refusal.contains("sudo apt-get install"), "{refusal}");
        return;
    };
    std::os::unix::fs::symlink(npm.join("npm"), alone.path().join("npm")).unwrap();
    machine.search.path = Some(alone.path().into());

    let installation = machine.postgres(|_| {}).unwrap_or_else(|error| panic!("{error}"));
    assert!(installation.program("postgres").starts_with(&machine.cache));
    let cluster = Cluster::start(&installation, Options::default()).await.unwrap();
    assert_eq!(setting(&cluster, "ssl").await, "on");
    let version = setting(&cluster, "server_version").await;
    assert!(version.starts_with(&format!("{}.", installation.major())), "{version}");
}
