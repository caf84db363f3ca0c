//! `cargo xtask qualify`: lanes that prove a promise under faults.

#[expect(dead_code, unused_imports, reason = "the lane joins it")]
mod commands;
