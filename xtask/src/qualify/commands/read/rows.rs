//! Every row of the database, by the superuser and in one snapshot.

use site_protocol::{Digest, Outcome};
use tokio_postgres::{Client, Row};

use super::ReadError;
use crate::qualify::commands::history::{
    Cancel, CommandRow, Database, EventRow, OutputRow, ResultRow, SessionRow, StreamName,
    StreamRows, VoidRow,
};

/// Reads everything.
pub(crate) async fn database(client: &Client) -> Result<Database, ReadError> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
    // A database that was killed again and again may know nothing of the sizes of its tables.
    client.batch_execute("SET LOCAL enable_nestloop = off").await?;
    let streams = client
        .query(
            "SELECT site, environment, last_seq, last_digest, done_seq, generation, session_id
               FROM site_coordination.stream_head
               JOIN site_coordination.stream_progress USING (site, environment)
              ORDER BY site, environment",
            &[],
        )
        .await?;
    let mut database = Database::default();
    for row in &streams {
        database.streams.push(stream(client, row).await?);
    }
    let events = client
        .query(
            "SELECT site, seq, type, environment, subject FROM site_coordination.event
              ORDER BY site, seq",
            &[],
        )
        .await?;
    for row in events {
        database.events.push(EventRow {
            site: row.get(0),
            seq: number(&row, 1)?,
            kind: row.get(2),
            environment: row.get(3),
            subject: row.get(4),
        });
    }
    client.batch_execute("COMMIT").await?;
    Ok(database)
}

async fn stream(client: &Client, head: &Row) -> Result<StreamRows, ReadError> {
    let (site, environment): (String, String) = (head.get(0), head.get(1));
    let stream = StreamName { site, environment };
    let commands = rows(client, &stream, COMMANDS, |row| {
        Ok(CommandRow {
            seq: number(row, 0)?,
            command_id: row.get(1),
            key: row.get(2),
            kind: row.get(3),
            run_id: row.get(4),
            not_after: row.get(5),
            digest: digest(row.get(6))?,
            chain_digest: digest(row.get(7))?,
            body: row.get(8),
        })
    });
    let results = rows(client, &stream, RESULTS, |row| {
        Ok(ResultRow {
            seq: number(row, 0)?,
            digest: digest(row.get(1))?,
            outcome: outcome(row.get(2))?,
            generation: number(row, 3)?,
            received_at_micros: row.get(4),
            output: row.get::<_, Option<&[u8]>>(5).map(digest).transpose()?,
            body: row.get(6),
        })
    });
    let voids = rows(client, &stream, VOIDS, |row| {
        Ok(VoidRow { seq: number(row, 0)?, reason: row.get(1) })
    });
    let cancels = rows(client, &stream, CANCELS, |row| Ok(Cancel { seq: number(row, 0)? }));
    let outputs = rows(client, &stream, OUTPUTS, |row| {
        let (named, bytes) = (digest(row.get(1))?, digest(row.get(2))?);
        Ok(OutputRow { seq: number(row, 0)?, digest: named, bytes })
    });
    let sessions = rows(client, &stream, SESSIONS, |row| {
        Ok(SessionRow {
            generation: number(row, 0)?,
            session_id: row.get(1),
            opened_at_micros: row.get(2),
            superseded_at_micros: row.get(3),
        })
    });
    Ok(StreamRows {
        last_seq: number(head, 2)?,
        last_digest: digest(head.get(3))?,
        done_seq: number(head, 4)?,
        generation: number(head, 5)?,
        session_id: head.get(6),
        commands: commands.await?,
        results: results.await?,
        voids: voids.await?,
        cancels: cancels.await?,
        outputs: outputs.await?,
        sessions: sessions.await?,
        stream,
    })
}

const COMMANDS: &str = "
    SELECT seq, command_id, producer_key, kind, run_id,
           to_char(not_after AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),
           digest, chain_digest, body
      FROM site_coordination.command
      LEFT JOIN site_coordination.command_body USING (site, environment, seq)
     WHERE site = $1 AND environment = $2 ORDER BY seq";
const RESULTS: &str = "
    SELECT seq, digest, outcome, generation,
           (extract(epoch FROM received_at) * 1000000)::bigint, output_digest, body
      FROM site_coordination.command_result
      LEFT JOIN site_coordination.result_body USING (site, environment, seq)
     WHERE site = $1 AND environment = $2 ORDER BY seq";
const VOIDS: &str = "
    SELECT seq, reason FROM site_coordination.command_void
     WHERE site = $1 AND environment = $2 ORDER BY seq";
const CANCELS: &str = "
    SELECT seq FROM site_coordination.command_cancel
     WHERE site = $1 AND environment = $2 ORDER BY seq";
const OUTPUTS: &str = "
    SELECT seq, digest, sha256(bytes) FROM site_coordination.private_output
     WHERE site = $1 AND environment = $2 ORDER BY seq, slot";
const SESSIONS: &str = "
    SELECT generation, session_id, (extract(epoch FROM opened_at) * 1000000)::bigint,
           (extract(epoch FROM superseded_at) * 1000000)::bigint
      FROM site_coordination.session
     WHERE site = $1 AND environment = $2 ORDER BY generation";

async fn rows<T>(
    client: &Client,
    stream: &StreamName,
    sql: &str,
    read: impl Fn(&Row) -> Result<T, ReadError>,
) -> Result<Vec<T>, ReadError> {
    let rows = client.query(sql, &[&stream.site, &stream.environment]).await?;
    rows.iter().map(read).collect()
}

fn number(row: &Row, column: usize) -> Result<u64, ReadError> {
    Ok(u64::try_from(row.get::<_, i64>(column))?)
}

fn digest(bytes: &[u8]) -> Result<Digest, ReadError> {
    Ok(Digest::from_bytes(bytes.try_into()?))
}

fn outcome(word: &str) -> Result<Outcome, ReadError> {
    Ok(serde_json::from_value(word.into())?)
}
