//! Where the issuer's keys are, by its discovery document.

use http::uri::PathAndQuery;
use url::{Position, Url};

use super::{Issuer, issuer::origin, members::Members};

/// Why a document is not the issuer's. Nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// It is no JSON object with `issuer` and `jwks_uri`, both texts and each once.
    #[error("it is no discovery document")]
    NotADocument,
    /// Its `issuer` is another, if only by its spelling.
    #[error("it is of another issuer")]
    OtherIssuer,
    /// Its `jwks_uri` is no `https` URL of the issuer's own origin.
    #[error("its keys are not at the issuer's own origin")]
    KeysElsewhere,
}

/// The path of the issuer's keys. They must be at its own origin: so a document can't have us call
/// whom it likes, and one authority vouches for all that is fetched.
pub(crate) fn keys_path(document: &[u8], issuer: &Issuer) -> Result<String, DiscoveryError> {
    let mut members = Members::read(document).ok_or(DiscoveryError::NotADocument)?;
    let mut text = |name: &str| members.take::<String>(name).ok().flatten();
    let (named, keys) = (text("issuer"), text("jwks_uri"));
    let (named, keys) = named.zip(keys).ok_or(DiscoveryError::NotADocument)?;
    if named != issuer.as_str() {
        return Err(DiscoveryError::OtherIssuer);
    }
    let url = Url::parse(&keys).map_err(|_| DiscoveryError::KeysElsewhere)?;
    let is_plain =
        url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if !is_plain || origin(&url).as_ref() != Some(issuer.origin()) {
        return Err(DiscoveryError::KeysElsewhere);
    }
    let path = &url[Position::BeforePath..Position::AfterQuery];
    match path.parse::<PathAndQuery>() {
        Ok(_) => Ok(path.to_owned()),
        Err(_) => Err(DiscoveryError::KeysElsewhere),
    }
}
