//! What a benchmark runs on: a durable cluster, and Sites with a listener each.

use std::{error::Error, path::Path, time::Duration};

use database::{Pool, PoolLimits, Role};
use site_client::{Origin, SiteClient, Timeouts, TokenFile, roots_from_pem_file};
use site_coordination::{Environment, PRODUCER_ROLE, Producer, SiteId, Stream};
use tempfile::TempDir;
use test_support::{
    DatabaseUrls, Process, TestDatabase, TestSite, bin,
    postgres::{Cluster, Machine, Options, migrated_database},
};

use super::commands::enqueuers::ENQUEUERS;
use crate::step::root;

/// The database of the product.
pub(crate) const DATABASE: &str = "site_control";

/// How long a statement may wait and run: a machine that is too busy makes a figure low, not void.
const PATIENCE: Duration = Duration::from_secs(60);

/// A durable cluster with PostgreSQL's own settings, and the migrated database in it. Everything ends
/// with the value.
pub(crate) struct Bench {
    /// Whether it only shows that it works, with figures that mean nothing.
    pub(crate) quick: bool,
    folder: TempDir,
    cluster: Cluster,
}

/// A Site with one stream and its own `site-api`, which ends with the value.
pub(crate) struct BenchSite {
    /// Its stream.
    pub(crate) stream: Stream,
    /// Its files and addresses.
    pub(crate) site: TestSite,
    /// Its listener.
    pub(crate) listener: Process,
}

impl Bench {
    /// Starts the cluster and migrates its database.
    pub(crate) async fn start(quick: bool) -> Result<Self, Box<dyn Error>> {
        let machine = Machine::of_this_process(&root().join("target"));
        let installation = machine.postgres(|what| eprintln!("{what}"))?;
        let options = Options { durable: true, ..Options::default() };
        let mut cluster = Cluster::start(&installation, options).await?;
        migrated_database(&mut cluster, DATABASE, &bin("site-admin")).await?;
        let folder = tempfile::Builder::new().prefix("site-control-bench-").tempdir()?;
        Ok(Self { quick, folder, cluster })
    }

    /// The cluster: for a superuser's connection, and for what is beside the product.
    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// A folder for files, which goes with the value.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes another database in the cluster, for a floor, with what `schema` makes. Returns a
    /// superuser's connection to it.
    pub(crate) async fn database(
        &self,
        name: &str,
        schema: &str,
    ) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
        let admin = self.cluster.superuser("postgres").await?;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await?;
        let database = self.cluster.superuser(name).await?;
        database.batch_execute(schema).await?;
        Ok(database)
    }

    /// Takes every stream of the parts before out of the database. None of their Sites may run.
    pub(crate) async fn empty(&self) -> Result<(), tokio_postgres::Error> {
        let database = self.superuser().await?;
        let streams =
            "TRUNCATE site_coordination.stream_head, site_coordination.event_counter CASCADE";
        database.batch_execute(streams).await
    }

    /// A migrated database of its own, empty as the product's is before anything else is done.
    pub(crate) async fn copy(&self) -> TestDatabase {
        TestDatabase::copy_of(&self.cluster, DATABASE).await
    }

    /// A superuser's connection to the database of the product, for looking and for preparing.
    pub(crate) async fn superuser(&self) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
        self.cluster.superuser(DATABASE).await
    }

    /// A pool of a role, with as many connections as a program of ours has.
    pub(crate) fn pool(&self, role: Role) -> Result<Pool, Box<dyn Error>> {
        self.pool_of(role, PoolLimits::default().connections)
    }

    fn pool_of(&self, role: Role, connections: usize) -> Result<Pool, Box<dyn Error>> {
        pool(&self.cluster.access().role_url(role.name, DATABASE), connections)
    }

    /// A producer for one stream.
    pub(crate) fn producer(&self) -> Result<Producer, Box<dyn Error>> {
        self.producer_of(1)
    }

    /// One producer for some streams, as a control plane has it: four connections for each of them to
    /// enqueue by, and one for all hints.
    pub(crate) fn producer_of(&self, streams: usize) -> Result<Producer, Box<dyn Error>> {
        let connections = streams * ENQUEUERS as usize + 1;
        Ok(Producer::new(self.pool_of(PRODUCER_ROLE, connections)?))
    }

    /// Sets a Site with one stream up, by `site-admin`, and starts its `site-api`.
    pub(crate) async fn site(
        &self,
        name: &str,
        environment: Environment,
    ) -> Result<BenchSite, Box<dyn Error>> {
        let site = self.site_without_listener(name, environment)?;
        let listener = site.start_site_api().await?;
        Ok(BenchSite { stream: stream(name, environment)?, site, listener })
    }

    /// The same, and nothing started yet.
    pub(crate) fn site_without_listener(
        &self,
        name: &str,
        environment: Environment,
    ) -> Result<TestSite, Box<dyn Error>> {
        let url = |role| self.cluster.access().role_url(role, DATABASE);
        let urls = DatabaseUrls {
            api: url("site_coordination_api"),
            producer: url("site_coordination_producer"),
        };
        let folder = self.folder().join(name);
        Ok(TestSite::set_up(&folder, name, environment.as_str(), urls)?)
    }
}

impl BenchSite {
    /// A client with connections of its own, as a Runtime at the Site has one.
    pub(crate) async fn client(&self) -> Result<SiteClient, Box<dyn Error>> {
        let roots = roots_from_pem_file(&self.site.file("tls/ca.crt"))?;
        let token = TokenFile::open(self.site.file("bearer")).await?;
        Ok(SiteClient::new(Origin::parse(&self.site.origin())?, roots, token, Timeouts::default()))
    }
}

/// A pool for the URL of a role.
pub(crate) fn pool(url: &str, connections: usize) -> Result<Pool, Box<dyn Error>> {
    let limits =
        PoolLimits { connections, wait: PATIENCE, statement: PATIENCE, ..PoolLimits::default() };
    Ok(Pool::new(&url.parse()?, "xtask bench", limits))
}

/// The stream of a Site.
pub(crate) fn stream(site: &str, environment: Environment) -> Result<Stream, Box<dyn Error>> {
    Ok(Stream { site: SiteId::parse(site)?, environment })
}
