#![doc = include_str!("../README.md")]

pub mod settings;
pub mod telemetry;

pub use settings::{EXIT_SETTINGS, Settings, SettingsErrors};
