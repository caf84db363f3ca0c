#![doc = include_str!("../README.md")]

mod events;
mod report;
mod settings;
mod start;

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use service_start::EXIT_SOFTWARE;

fn main() -> ExitCode {
    // One statement after the other, and now and then a look at the metrics.
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("ssh-access: no runtime: {error}");
                return ExitCode::from(EXIT_SOFTWARE);
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
