//! `site-admin completions`.

use clap::Args;
use clap_complete::Shell;

use crate::{Failure, output::print};

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Completions, mut program: clap::Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "site-admin", &mut script);
    print(String::from_utf8_lossy(&script).trim_end())
}
