//! The cluster that the tests of one run share.

use std::{error::Error, path::PathBuf};

use test_support::{
    bin,
    postgres::{Cluster, Machine, Options, TEST_POSTGRES, make_template},
};

use crate::{
    step::{self, command},
    stop::Stop,
};

/// A cluster with the migrated template, and the file that leads the tests there.
pub(crate) struct TestPostgres {
    pub(crate) cluster: Cluster,
    pub(crate) file: PathBuf,
}

/// Starts it; `site-admin` must have been built.
pub(crate) async fn start(stop: &Stop) -> Result<TestPostgres, Box<dyn Error>> {
    // Not interrupted: a package is installed whole.
    let machine = Machine::of_this_process(&step::root().join("target"));
    let installation = machine.postgres(|what| eprintln!("{what}"))?;
    stop.unless(async {
        let mut cluster = Cluster::start(&installation, Options::default()).await?;
        make_template(&mut cluster, &bin("site-admin")).await?;
        let file = cluster.folder().join("access.json");
        cluster.access().write_to(&file)?;
        eprintln!(
            "PostgreSQL {} on port {}, in {}",
            installation.major(),
            cluster.access().port,
            cluster.folder().display()
        );
        Ok(TestPostgres { cluster, file })
    })
    .await?
}

/// Keeps such a cluster until the user stops it.
pub(crate) async fn keep(stop: &Stop) -> Result<(), Box<dyn Error>> {
    step::run(stop, command("cargo", &["build", "--package", "site-admin"])).await?;
    let TestPostgres { cluster, file } = start(stop).await?;
    println!("export {TEST_POSTGRES}={}", file.display());
    eprintln!("Ctrl-C stops and removes it.");
    stop.requested().await;
    cluster.stop().await?;
    Ok(())
}
