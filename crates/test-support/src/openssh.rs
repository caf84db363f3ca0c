//! OpenSSH's own programs: finding or installing them, running a server for users that only it knows,
//! and logging in there.

mod config;
mod find;
mod keygen;
mod login;
mod server;
mod users;

pub use find::{Installation, PrepareError, Search};
pub use keygen::ssh_keygen;
pub use login::{Login, LoginError, SshKey};
pub use server::{Sshd, SshdError, SshdSetup};
