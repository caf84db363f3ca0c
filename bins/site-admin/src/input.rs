//! What `site-admin` reads: a file, or its standard input.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

use crate::Failure;

/// A file for reading, `-` for standard input.
pub(crate) fn open(file: &str) -> Result<Box<dyn BufRead>, Failure> {
    if file == "-" {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let opened = File::open(file).map_err(|error| Failure::absent(format!("{file}: {error}")))?;
    Ok(Box::new(BufReader::new(opened)))
}

/// The text of a file, `-` for standard input, up to so many bytes.
pub(crate) fn read(file: &str, most: usize) -> Result<String, Failure> {
    let mut text = String::new();
    open(file)?
        .take(most as u64)
        .read_to_string(&mut text)
        .map_err(|error| Failure::data(format!("{file}: {error}")))?;
    Ok(text)
}
