//! The parts that other tests stand on, against the real things.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod database;
mod kube_api;
mod openssh;
mod process;
mod rabbitmq;
