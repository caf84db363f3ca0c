//! The floor of a read: the same rows by `COPY`, over verified TLS as the product's connections are.

use std::{
    error::Error,
    future::poll_fn,
    pin::pin,
    time::{Duration, Instant},
};

use futures_util::Stream;

use super::site::SshSite;
use crate::bench::{commands::notify::connect, world::Bench};

/// A key that is in force.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) unix_user: String,
    pub(super) key_id: String,
    pub(super) public_key: String,
}

/// Reads everything that is in force at a Site, with all that a snapshot has of it, and in its order.
/// Returns how long that took, on a connection that was open already.
pub(super) async fn rows(
    bench: &Bench,
    site: &SshSite,
) -> Result<(Duration, Vec<Row>), Box<dyn Error>> {
    let client = connect(bench, site.database.name(), None).await?;
    let copy = format!(
        "COPY (SELECT unix_user, key_id, member_id, public_key, expires_at
                 FROM ssh_access.site_key WHERE site = '{}'
                ORDER BY unix_user, key_id) TO STDOUT",
        site.files.site
    );
    let begun = Instant::now();
    let mut chunks = pin!(client.copy_out(&copy).await?);
    let mut bytes = Vec::new();
    while let Some(chunk) = poll_fn(|context| chunks.as_mut().poll_next(context)).await {
        bytes.extend_from_slice(&chunk?);
    }
    let took = begun.elapsed();
    let rows = std::str::from_utf8(&bytes)?.lines().map(row).collect::<Option<Vec<_>>>();
    let rows = rows.ok_or("a row of COPY has too few columns")?;
    if rows.len() != site.keys as usize {
        return Err(format!("void: {} keys are in force, not {}", rows.len(), site.keys).into());
    }
    Ok((took, rows))
}

/// Nothing in the columns is escaped: they are visible ASCII.
fn row(line: &str) -> Option<Row> {
    let mut columns = line.split('\t').map(str::to_owned);
    let (unix_user, key_id, _member) = (columns.next()?, columns.next()?, columns.next()?);
    Some(Row { unix_user, key_id, public_key: columns.next()? })
}
