//! The cluster that the tests of one run share.

use std::path::{Path, PathBuf};

use test_support::postgres::{Cluster, Options, Search, TEST_POSTGRES, Template, prepare};

/// Starts a cluster with the migrated template, and returns it with the file that leads the tests there.
pub(crate) async fn start() -> Result<(Cluster, PathBuf), Box<dyn std::error::Error>> {
    let installation = prepare(&Search::of_this_process())?;
    let mut cluster = Cluster::start(&installation, Options::default()).await?;
    Template::make(&mut cluster, Path::new("target/debug/site-admin")).await?;
    let file = cluster.folder().join("access.json");
    cluster.access().write_to(&file)?;
    Ok((cluster, file))
}

/// Keeps such a cluster until Ctrl-C.
pub(crate) async fn keep() -> Result<(), Box<dyn std::error::Error>> {
    let (cluster, file) = start().await?;
    println!("export {TEST_POSTGRES}={}", file.display());
    tokio::signal::ctrl_c().await?;
    cluster.stop().await?;
    Ok(())
}
