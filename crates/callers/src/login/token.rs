//! A token, taken apart. Nothing is verified here.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::zeroize::Zeroizing;

use super::{LoginRefusal, algorithm::Algorithm, claims::Claims, members::Members};
use crate::jwt::Jwt;

/// What a token says of itself (RFC 7515, RFC 7519), and what is needed to verify it.
pub(crate) struct SignedToken<'a> {
    /// What the signature is of: the first two parts as they stand.
    pub(super) signed: &'a str,
    pub(super) signature: Vec<u8>,
    pub(super) algorithm: Algorithm,
    /// The key's id.
    pub(super) kid: String,
    pub(crate) claims: Claims,
}

/// What the header says that the token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderType {
    /// `at+jwt`: an access token and nothing else (RFC 9068).
    AccessToken,
    /// `JWT`, or nothing: any kind of token.
    Any,
}

impl<'a> SignedToken<'a> {
    /// Takes a token apart.
    ///
    /// # Errors
    ///
    /// [`LoginRefusal`], for what is wrong in itself.
    pub(crate) fn read(jwt: &'a Jwt) -> Result<Self, LoginRefusal> {
        // The form of a token has three parts.
        let (signed, signature) = jwt.expose().rsplit_once('.').ok_or(LoginRefusal::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(LoginRefusal::Malformed)?;
        let [header, claims] = [decoded(header)?, decoded(claims)?];
        let mut header = Members::read(&header).ok_or(LoginRefusal::Malformed)?;
        if header.has("crit") {
            return Err(LoginRefusal::Critical);
        }
        let algorithm: String = required(&mut header, "alg")?;
        let algorithm = Algorithm::parse(&algorithm).ok_or(LoginRefusal::Algorithm)?;
        let kid = required(&mut header, "kid")?;
        let header_type = header_type(&mut header)?;
        Ok(Self {
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| LoginRefusal::Malformed)?,
            algorithm,
            kid,
            claims: Claims::read(&claims, header_type)?,
        })
    }
}

/// The `iss` of a token, where it can be read.
pub(super) fn named_issuer(jwt: &Jwt) -> Option<String> {
    let claims = decoded(jwt.expose().split('.').nth(1)?).ok()?;
    Members::read(&claims)?.take("iss").ok()?
}

/// Without padding, and with no bits left over: a token has one spelling.
fn decoded(part: &str) -> Result<Zeroizing<Vec<u8>>, LoginRefusal> {
    URL_SAFE_NO_PAD.decode(part).map(Zeroizing::new).map_err(|_| LoginRefusal::Malformed)
}

fn required(header: &mut Members<'_>, name: &'static str) -> Result<String, LoginRefusal> {
    header.take(name).ok().flatten().ok_or(LoginRefusal::Header(name))
}

/// Media types are compared without regard to case (RFC 7515, section 4.1.9).
fn header_type(header: &mut Members<'_>) -> Result<HeaderType, LoginRefusal> {
    let wrong = LoginRefusal::Header("typ");
    let Some(name) = header.take::<String>("typ").map_err(|_| wrong)? else {
        return Ok(HeaderType::Any);
    };
    match name.to_ascii_lowercase().as_str() {
        "at+jwt" | "application/at+jwt" => Ok(HeaderType::AccessToken),
        "jwt" => Ok(HeaderType::Any),
        _ => Err(LoginRefusal::NotAnAccessToken),
    }
}
