//! The request that asks the API server about a token.

use bytes::Bytes;
use http::{Request, header};
use https_client::BearerToken;
use secrecy::zeroize::Zeroizing;
use serde::Serialize;

const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// Asks about `token`, with our own `audience` and never with the one that the token names.
pub(super) fn request(reviewer: &BearerToken, token: &str, audience: &str) -> Request<Bytes> {
    let review = TokenReview {
        api_version: "authentication.k8s.io/v1",
        kind: "TokenReview",
        spec: Spec { token, audiences: [audience] },
    };
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let mut body = Vec::with_capacity(token.len() + audience.len() * 6 + 256);
    // Strings: writing them to memory can't fail.
    let _ = serde_json::to_writer(&mut body, &review);
    let mut request = Request::new(Bytes::from_owner(Zeroizing::new(body)));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_static(PATH);
    let headers = request.headers_mut();
    headers.insert(header::AUTHORIZATION, reviewer.authorization());
    headers.insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    request
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenReview<'a> {
    api_version: &'static str,
    kind: &'static str,
    spec: Spec<'a>,
}

#[derive(Serialize)]
struct Spec<'a> {
    token: &'a str,
    audiences: [&'a str; 1],
}
