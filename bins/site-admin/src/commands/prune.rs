//! `site-admin commands prune`.

use std::fmt;

use clap::Args;
use database::{Pool, PoolLimits};
use serde::Serialize;
use service_kit::Settings;
use site_coordination::{KEEPER_ROLE, Keeper, Pruned, Retention};

use crate::{Failure, contexts::KEEPER_URL, database::database_url, output::Format};

const BODIES: &str = "SITE_COORDINATION_BODIES_RETENTION_DAYS";
const RECEIPTS: &str = "SITE_COORDINATION_RECEIPTS_RETENTION_DAYS";
const EVENTS: &str = "SITE_COORDINATION_EVENTS_RETENTION_DAYS";

/// The longest time that can be asked for, a hundred years.
const MOST_DAYS: u32 = 36_500;

#[derive(Args)]
pub(crate) struct Prune {
    /// For how many days after its ending a command's bodies and private outputs are kept; 30, or
    /// SITE_COORDINATION_BODIES_RETENTION_DAYS.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    bodies: Option<u32>,
    /// For how many days after its ending a command is kept with its receipt, its key and its marks;
    /// 400, or SITE_COORDINATION_RECEIPTS_RETENTION_DAYS. Not less than for bodies.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    receipts: Option<u32>,
    /// For how many days events are kept; 400, or SITE_COORDINATION_EVENTS_RETENTION_DAYS.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    events: Option<u32>,
}

/// Works with the keeper's own credential, as no other role may delete anything.
pub(super) async fn run(arguments: Prune, format: Format) -> Result<(), Failure> {
    let mut settings = Settings::from_process();
    let url = settings.required_secret_as(KEEPER_URL, database_url);
    let default = Retention::default();
    let mut kept = |flag: Option<u32>, name, default| {
        let setting = settings.or_default(name, default, days);
        flag.unwrap_or(setting)
    };
    let retention = Retention {
        bodies: kept(arguments.bodies, BODIES, default.bodies),
        receipts: kept(arguments.receipts, RECEIPTS, default.receipts),
        events: kept(arguments.events, EVENTS, default.events),
    };
    if retention.receipts < retention.bodies {
        let Retention { bodies, receipts, .. } = retention;
        let reason = format!("receipts, {receipts} days, can't go before bodies, {bodies} days");
        settings.mistake(RECEIPTS, reason);
    }
    let url = settings.accept(url)?;
    KEEPER_ROLE.check(&url).await?;
    let keeper = Keeper::new(Pool::new(&url, "site-admin", PoolLimits::default()));
    let Pruned { commands_bodies, outputs, rows, events } = keeper.prune(retention).await?;
    format.print(&Deleted { bodies: commands_bodies, outputs, commands: rows, events })
}

fn days(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(days) if (1..=MOST_DAYS).contains(&days) => Ok(days),
        _ => Err(format!("must be a whole number from 1 to {MOST_DAYS}")),
    }
}

/// How much was deleted.
#[derive(Serialize)]
struct Deleted {
    bodies: u64,
    outputs: u64,
    commands: u64,
    events: u64,
}

impl fmt::Display for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bodies, outputs, commands, events } = self;
        write!(
            f,
            "deleted {bodies} bodies, {outputs} private outputs, {commands} commands with their \
             receipts, {events} events"
        )
    }
}
