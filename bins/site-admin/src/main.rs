//! The program `site-admin`; all of it is the library's.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    site_admin::run().await
}
