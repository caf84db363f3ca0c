//! A producer that enqueues within a transaction of its own and takes its time to commit, rolls back,
//! or goes away. While it waits it holds the end of its stream, as an ill-behaved one would.

use std::{
    error::Error,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustls::ClientConfig;
use site_client::roots_from_pem_file;
use site_coordination::{CommandId, NewCommand};
use tokio_postgres::{Client, Config, Row, config::SslMode, error::SqlState, types::Type};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    super::history::{CallAnswer, Place, Way, text_of},
    worker::Worker,
};

/// The product's own statement.
const ENQUEUE: &str = include_str!("../../../../../crates/site-coordination/src/sql/enqueue.sql");

const TYPES: [Type; 10] = [
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::BYTEA,
    Type::TEXT,
    Type::TIMESTAMPTZ,
    Type::INT8,
];

/// Between two transactions, at the most.
const PACE: Duration = Duration::from_secs(3);
/// What one step may take; a database that is stopped answers nothing.
const STEP: Duration = Duration::from_secs(12);

/// How to reach the database as a producer.
pub(super) struct Address {
    config: Config,
    tls: MakeRustlsConnect,
}

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
    /// The connection goes away.
    Leave,
}

impl Address {
    /// Reads a URL with `sslrootcert`.
    pub(super) fn parse(url: &str) -> Result<Self, Box<dyn Error>> {
        let (address, query) = url.split_once('?').ok_or("a URL without sslrootcert")?;
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, ca) =
            pairs.find(|(name, _)| *name == "sslrootcert").ok_or("a URL without sslrootcert")?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots_from_pem_file(Path::new(ca))?)
            .with_no_client_auth();
        let mut config: Config = address.parse()?;
        config.ssl_mode(SslMode::Require).application_name("slow producer");
        Ok(Self { config, tls: MakeRustlsConnect::new(tls) })
    }

    async fn connect(&self) -> Result<Client, String> {
        let (client, connection) = step(self.config.connect(self.tls.clone())).await?;
        // It ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }
}

/// Enqueues until it is enough and everything is acknowledged that was not rolled back on purpose.
pub(super) async fn run(mut worker: Worker, address: Address, backlog: u32) {
    loop {
        while let Some(commands) = worker.lost() {
            call(&mut worker, &address, backlog, &commands, false).await;
        }
        if worker.is_enough() {
            return;
        }
        worker.pause(PACE).await;
        let count = worker.random.within(1..4);
        let commands = worker.draw(count);
        let given_up = worker.random.within(0..8) == 0;
        call(&mut worker, &address, backlog, &commands, given_up).await;
    }
}

/// Repeats the same transaction until it is acknowledged; one that is given up is rolled back once and
/// never comes again.
async fn call(
    worker: &mut Worker,
    address: &Address,
    backlog: u32,
    commands: &[NewCommand],
    given_up: bool,
) {
    loop {
        let end = match worker.random.within(0..10) {
            _ if given_up => End::Rollback,
            0 => End::Rollback,
            1 => End::Leave,
            _ => End::Commit,
        };
        let hold = match worker.random.within(0..10) {
            0 => Duration::from_millis(2_500),
            1..4 => Duration::from_millis(600),
            _ => Duration::from_millis(60),
        };
        let hold = worker.random.duration(hold);
        let began = worker.now();
        let answer = transaction(worker, address, backlog, commands, hold, end).await;
        if worker.note(Way::OpenTransaction, commands, began, answer) || given_up {
            return;
        }
        worker.back_off().await;
    }
}

async fn transaction(
    worker: &Worker,
    address: &Address,
    backlog: u32,
    commands: &[NewCommand],
    hold: Duration,
    end: End,
) -> CallAnswer {
    // Until the commit is sent nothing is stored, however this connection ends.
    let (client, places) = match open(worker, address, backlog, commands).await {
        Ok(opened) => opened,
        Err(reason) => return CallAnswer::Refused(reason),
    };
    tokio::time::sleep(hold).await;
    match end {
        End::Leave => CallAnswer::Refused("left before the commit".to_owned()),
        End::Rollback => {
            let rolled_back = step(client.batch_execute("ROLLBACK")).await;
            let failed = rolled_back.err().map(|reason| format!(", then: {reason}"));
            CallAnswer::Refused(format!("rolled back{}", failed.unwrap_or_default()))
        }
        End::Commit => match tokio::time::timeout(STEP, client.simple_query("COMMIT")).await {
            Ok(Ok(_)) => CallAnswer::Acknowledged(places),
            // A deferred check could say no; the end of a session leaves it open.
            Ok(Err(error)) if error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION) => {
                CallAnswer::Refused(text_of(&error))
            }
            Ok(Err(error)) => CallAnswer::Unknown(text_of(&error)),
            Err(_elapsed) => CallAnswer::Unknown("no answer to the commit in time".to_owned()),
        },
    }
}

/// A transaction in which the commands are enqueued, with the places that they have once it commits.
async fn open(
    worker: &Worker,
    address: &Address,
    backlog: u32,
    commands: &[NewCommand],
) -> Result<(Client, Vec<Place>), String> {
    let client = address.connect().await?;
    step(client.batch_execute("BEGIN")).await?;
    let statement = step(client.prepare_typed(ENQUEUE, &TYPES)).await?;
    let (site, environment) = (worker.stream.site.as_str(), worker.stream.environment.as_str());
    let mut places = Vec::new();
    for command in commands {
        let id = CommandId::derive(&worker.stream, &command.key);
        let row = step(client.query_opt(
            &statement,
            &[
                &site,
                &environment,
                &id.as_str(),
                &command.key.as_str(),
                &command.kind.as_str(),
                &command.run_id.as_ref().map(|run| run.as_str()),
                &command.digest(&id).as_bytes().as_slice(),
                &command.body.as_str(),
                &None::<SystemTime>,
                &i64::from(backlog),
            ],
        ))
        .await?;
        let row = row.ok_or("the stream does not exist yet, or it is full")?;
        places.push(place(&id, &row)?);
    }
    Ok((client, places))
}

fn place(id: &CommandId, row: &Row) -> Result<Place, String> {
    let column = |error: tokio_postgres::Error| text_of(&error);
    let seq: i64 = row.try_get(0).map_err(column)?;
    Ok(Place {
        command_id: id.as_str().to_owned(),
        seq: seq.unsigned_abs(),
        new: row.try_get(3).map_err(column)?,
    })
}

/// One step, within its time.
async fn step<T>(
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, String> {
    match tokio::time::timeout(STEP, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(text_of(&error)),
        Err(_elapsed) => Err("no answer in time".to_owned()),
    }
}
