//! The program `site-api`: its threads, its clock and its random source. All else is the library's.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use ring::rand::SystemRandom;
use service_start::EXIT_SOFTWARE;
use site_api::run;

fn main() -> ExitCode {
    // One Site's traffic keeps two threads busy at the most.
    let runtime =
        match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("site-api: no runtime: {error}");
                return ExitCode::from(EXIT_SOFTWARE);
            }
        };
    #[expect(clippy::disallowed_methods, reason = "the one place that makes the random source")]
    let random = SystemRandom::new();
    let code = runtime.block_on(run(clock, random));
    // Blocking work that is left, if any, must not hold up the end.
    runtime.shutdown_background();
    ExitCode::from(code)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the clock")]
fn clock() -> DateTime<Utc> {
    Utc::now()
}
