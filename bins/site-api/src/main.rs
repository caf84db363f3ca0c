//! `site-api`: the Site API of one Site, behind one HTTPS listener.
//!
//! It assembles: reads its settings, gives each context its own restricted credential, maps callers
//! to calls and errors to problems, and stops in order. The rules are in the context crates.

mod authenticate;
mod certificate;
mod commands;
mod events;
mod files;
mod grants;
mod limits;
mod problems;
mod routes;
mod settings;
mod start;
mod state;
mod watch;

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;

fn main() -> ExitCode {
    // One Site's traffic keeps two threads busy at the most.
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("site-api: no runtime: {error}");
                return ExitCode::from(start::EXIT_SOFTWARE);
            }
        };
    #[expect(clippy::disallowed_methods, reason = "the one place that makes the random source")]
    let random = SystemRandom::new();
    let code = runtime.block_on(start::run(clock, random));
    // Blocking work that is left, if any, must not hold up the end.
    runtime.shutdown_background();
    ExitCode::from(code)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn clock() -> DateTime<Utc> {
    Utc::now()
}
