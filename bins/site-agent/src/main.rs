//! The program `site-agent`; all of it is the library's.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    site_agent::run().await
}
