//! Members and operators, by the access tokens of the login issuer.

mod claims;
mod fetch;
mod issuer;
mod keys;
mod provider;
mod signatures;
mod strange;
mod support;
