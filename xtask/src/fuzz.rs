//! `cargo xtask fuzz`: the fuzz targets for real. docs/FUZZING.md has what each of them shows.

use std::{error::Error, fs, io};

use clap::Args;

use crate::{
    step::{self, command, root},
    stop::Stop,
    tools,
};

/// The longest input that is made, in bytes: what the corpus may hold, less some.
const LONGEST: u32 = 8 * 1024;

#[derive(Args)]
pub(crate) struct Fuzz {
    /// The targets, all of them where none is named.
    targets: Vec<String>,
    /// How long each is run.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
}

/// Builds the targets and runs them. What leads further is kept in fuzz/target, where the next run
/// goes on; fuzz/corpus stays small and is only read.
pub(crate) async fn run(stop: &Stop, arguments: Fuzz) -> Result<(), Box<dyn Error>> {
    let all = all()?;
    if let Some(unknown) = arguments.targets.iter().find(|target| !all.contains(target)) {
        return Err(format!("there is no target {unknown}; there are {}", all.join(", ")).into());
    }
    let program = tools::program(stop, &tools::FUZZ).await?;
    let targets = if arguments.targets.is_empty() { all } else { arguments.targets };
    for target in targets {
        // The library is built with coverage by flags that a stable compiler takes only so. No
        // sanitizer: our code has no `unsafe`, and without one a run is worth several.
        let (led_further, corpus) =
            (format!("fuzz/target/corpus/{target}"), format!("fuzz/corpus/{target}"));
        fs::create_dir_all(root().join(&led_further))?;
        let options = ["run", "--fuzz-dir", "fuzz", "--sanitizer", "none"];
        let named = [&options[..], &[&target, &led_further, &corpus, "--"]].concat();
        let mut fuzz = command(&program, &named);
        fuzz.env("RUSTC_BOOTSTRAP", "1");
        fuzz.arg(format!("-max_total_time={}", arguments.seconds));
        fuzz.arg(format!("-max_len={LONGEST}"));
        // A second is an age for 8 KiB, and so is a gigabyte.
        fuzz.args(["-timeout=5", "-rss_limit_mb=1024", "-print_final_stats=1", "-verbosity=0"]);
        step::run(stop, fuzz).await?;
    }
    Ok(())
}

/// Every target, by name.
fn all() -> io::Result<Vec<String>> {
    let programs = fs::read_dir(root().join("fuzz/fuzz_targets"))?;
    let names = programs.map(|program| Ok(program?.path().with_extension("")));
    let names: io::Result<Vec<_>> = names.collect();
    let mut names: Vec<_> = names?
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}
