//! What a run says: each part as soon as it is measured, and its page in the end.

use std::{error::Error, fs};

use super::{
    figure::{Figure, Part, shown},
    machine::Machine,
    page,
    world::Bench,
};
use crate::step::root;

/// The parts of a run.
pub(crate) struct Report {
    json: bool,
    parts: Vec<Part>,
}

impl Report {
    /// Of nothing yet; told as one JSON object a line, or as a table.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, parts: Vec::new() }
    }

    /// Prints a part, and keeps it for the page.
    pub(crate) fn tell(&mut self, part: Part) -> serde_json::Result<()> {
        for figure in &part.figures {
            print(figure, self.json)?;
        }
        self.parts.push(part);
        Ok(())
    }

    /// Writes the page of a benchmark, in the place of the one before it.
    pub(crate) async fn write(
        &self,
        name: &str,
        introduction: &str,
        bench: &Bench,
    ) -> Result<(), Box<dyn Error>> {
        let machine = Machine::of(bench).await?;
        let path = root().join(format!("docs/benchmarks/{name}.md"));
        fs::create_dir_all(path.with_file_name(""))?;
        fs::write(&path, page::text(name, introduction, &machine, &self.parts))?;
        eprintln!("{} is written", path.display());
        Ok(())
    }
}

fn print(figure: &Figure, json: bool) -> serde_json::Result<()> {
    if json {
        println!("{}", serde_json::to_string(figure)?);
        return Ok(());
    }
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), shown);
    let spread = figure
        .spread
        .map_or_else(String::new, |(low, high)| format!("  [{} … {}]", shown(low), shown(high)));
    let target = match (figure.target, figure.reached()) {
        (Some(target), Some(true)) => format!("  {target}: reached"),
        (Some(target), _) => format!("  {target}: NOT reached"),
        _ => String::new(),
    };
    println!(
        "{:<58} {:>9} {:<6} floor {:>9} ratio {:>6}{spread}{target}",
        figure.figure,
        shown(figure.value),
        figure.unit,
        number(figure.floor),
        number(figure.ratio),
    );
    Ok(())
}
