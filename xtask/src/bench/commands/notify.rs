//! The floor of a delivery: a command enqueued by a plain statement, `NOTIFY` after its commit, and a
//! select by the connection that listens. Directly by the driver, over the same verified TLS.

use std::{
    error::Error,
    future::poll_fn,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::ClientConfig;
use site_client::roots_from_pem_file;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::floor::{OPTIONS, SCHEMA};
use crate::bench::world::Bench;

const DATABASE: &str = "floor_notify";
const ENQUEUE: &str = "
    WITH old AS (SELECT seq FROM command WHERE command_id = $1), moved AS (
        UPDATE head SET last_seq = last_seq + 1, last_digest = sha256(last_digest || $2)
         WHERE stream = 1 AND NOT EXISTS (SELECT FROM old)
        RETURNING last_seq, last_digest
    ), new AS (
        INSERT INTO command (stream, seq, command_id, digest, chain_digest, body)
        SELECT 1, last_seq, $1, $2, last_digest, $3 FROM moved
        RETURNING seq
    )
    SELECT seq FROM new UNION ALL SELECT seq FROM old";
const TELL: &str = "
    SELECT set_config('synchronous_commit', 'off', true) FROM pg_notify('floor', 'slurm')";
const READ: &str = "
    SELECT seq, command_id, digest, body FROM command WHERE stream = 1 AND seq > $1
     ORDER BY seq LIMIT 64";

/// Two connections, one that enqueues and tells, one that listens and reads.
pub(crate) struct Notify {
    enqueuing: Client,
    listening: Client,
    hints: mpsc::UnboundedReceiver<()>,
    enqueue: Statement,
    tell: Statement,
    read: Statement,
    after: i64,
}

impl Notify {
    pub(crate) async fn new(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        bench.database(DATABASE, SCHEMA).await?;
        let (hint, hints) = mpsc::unbounded_channel();
        let enqueuing = connect(bench, DATABASE, None).await?;
        let listening = connect(bench, DATABASE, Some(hint)).await?;
        listening.batch_execute("LISTEN floor").await?;
        let enqueue = enqueuing.prepare(ENQUEUE).await?;
        let tell = enqueuing.prepare(TELL).await?;
        let read = listening.prepare(READ).await?;
        Ok(Self { enqueuing, listening, hints, enqueue, tell, read, after: 0 })
    }

    /// Enqueues one command and waits until the listener has it. Returns how long that took from the
    /// call's begin.
    pub(crate) async fn once(&mut self, body: &str) -> Result<Duration, Box<dyn Error>> {
        let id = format!("cmd_{:032}", self.after + 1);
        let begun = Instant::now();
        let digest = [0x5a_u8; 32].as_slice();
        let enqueuing = async {
            self.enqueuing.query_one(&self.enqueue, &[&id, &digest, &body]).await?;
            self.enqueuing.query_one(&self.tell, &[]).await
        };
        let delivered = async {
            self.hints.recv().await.ok_or("the listening connection ended")?;
            let rows = self.listening.query(&self.read, &[&self.after]).await?;
            let row = rows.first().ok_or("a hint without a command")?;
            let body: &str = row.get(3);
            Ok::<_, Box<dyn Error>>((row.get(0), body.len(), begun.elapsed()))
        };
        let (told, delivered) = tokio::join!(enqueuing, delivered);
        told?;
        let (seq, bytes, took) = delivered?;
        if seq != self.after + 1 || bytes != body.len() {
            return Err("void: the floor delivered another command".into());
        }
        self.after = seq;
        Ok(took)
    }
}

/// A superuser's connection over verified TLS, as the product's connections are.
pub(crate) async fn connect(
    bench: &Bench,
    database: &str,
    hints: Option<mpsc::UnboundedSender<()>>,
) -> Result<Client, Box<dyn Error>> {
    let access = bench.cluster().access();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots_from_pem_file(&access.ca_file)?)
        .with_no_client_auth();
    let (client, mut connection) = tokio_postgres::Config::new()
        .host("127.0.0.1")
        .port(access.port)
        .user("postgres")
        .password(&access.superuser_password)
        .dbname(database)
        .options(OPTIONS)
        .ssl_mode(tokio_postgres::config::SslMode::Require)
        .connect(MakeRustlsConnect::new(tls))
        .await?;
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let (AsyncMessage::Notification(_), Some(hints)) = (message, &hints) {
                // Nobody waits any more where the receiver is gone.
                let _ = hints.send(());
            }
        }
    });
    Ok(client)
}
