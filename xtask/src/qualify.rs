//! `cargo xtask qualify`: lanes that prove a promise under faults.

mod commands;
