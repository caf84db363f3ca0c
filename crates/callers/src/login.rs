//! Members and operators, by the access tokens of the login issuer.
//!
//! A token is taken apart strictly (`token`) and judged by its own claims before a key is looked for
//! (`claims`), so that what does not even say that it is for us costs no fetch. Its signature is
//! checked by the issuer's keys (`keys`), which are found by discovery (`discovery`) and kept for a
//! while (`cache`). Nobody is asked about a token. What a member may do is not decided here.

mod algorithm;
mod cache;
mod claims;
mod discovery;
mod issuer;
mod keys;
mod members;
mod outcome;
mod source;
mod token;
mod verifier;

pub use cache::KeyTimes;
pub use claims::LEEWAY;
pub use discovery::DiscoveryError;
pub use issuer::{Audience, Issuer, IssuerError, NotAnAudience};
pub use keys::KeysError;
pub use outcome::{
    Document, Login, LoginError, LoginRefusal, LoginTrouble, MemberName, NotAMemberName,
};
pub use verifier::{LoginSettings, LoginVerifier};

pub(crate) use claims::Rules;
pub(crate) use discovery::keys_path;
pub(crate) use keys::Keys;
pub(crate) use token::SignedToken;
