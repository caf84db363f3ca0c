//! The parser and what is made of keys: by tables, by properties, and against the real `ssh-keygen`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod made;

mod digests;
mod line;
mod names;
mod openssh;
mod properties;
mod refusals;
