#![doc = include_str!("../README.md")]

mod client;
mod connections;
mod kept;
mod origin;
mod token;
mod trust;

pub use client::{Answer, HttpsClient, SendError};
pub use connections::{Connections, connections, is_refused_certificate};
pub use origin::{Origin, OriginError};
pub use token::{BearerToken, TokenFile, TokenFileError};
pub use trust::{RootsError, read_pem_file, roots_from_pem, roots_from_pem_file};
