//! Execution authority: accepted Runs as a Runtime and an Admission see them, and what an Attempt may
//! do now. Runs and bindings are written by `site-admin`, as their own roles.

mod disabled;
mod outage;
mod rabbitmq;
mod reading;
mod refused;
mod settings;
