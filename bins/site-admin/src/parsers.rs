//! What reads bytes from outside, for tests without files. No promise is made to anybody else.

pub use crate::{
    beto::policy::Policy, commands::line, keys::line as key_line, manifest::both as manifest,
    runs::document, tls::certificate,
};
