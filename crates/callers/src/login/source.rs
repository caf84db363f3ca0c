//! Fetching the issuer's keys: its discovery document, and what that names.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use https_client::{HttpsClient, SendError};
use tokio::time::Instant;

use super::{Document, Issuer, Keys, LoginTrouble, keys_path};

/// The largest document that is read, in bytes.
pub(super) const MOST_BYTES: usize = 256 * 1024;

/// Where the keys come from. Its client calls the issuer's origin alone.
pub(super) struct Source {
    client: HttpsClient,
    issuer: Issuer,
}

impl Source {
    pub(super) fn new(client: HttpsClient, issuer: Issuer) -> Self {
        Self { client, issuer }
    }

    /// The keys as they are now. The document is fetched each time as well: the keys may have moved.
    pub(super) async fn fetch(&self, deadline: Instant) -> Result<Keys, LoginTrouble> {
        let discovery = self.issuer.discovery_path();
        let document = self.get(Document::Discovery, discovery, deadline).await?;
        let path = keys_path(&document, &self.issuer).map_err(LoginTrouble::Discovery)?;
        let keys = self.get(Document::Keys, &path, deadline).await?;
        Keys::read(&keys).map_err(LoginTrouble::Keys)
    }

    async fn get(
        &self,
        document: Document,
        path: &str,
        deadline: Instant,
    ) -> Result<Bytes, LoginTrouble> {
        let trouble = |error| match error {
            SendError::Deadline => LoginTrouble::TooLate { document },
            error => LoginTrouble::Unanswered { document, source: Arc::new(error) },
        };
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = path.parse().map_err(|_| trouble(SendError::Path))?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let answer = self.client.send_repeatable(request, deadline).await.map_err(trouble)?;
        match answer.status {
            StatusCode::OK => Ok(answer.body),
            status => Err(LoginTrouble::Status { document, status }),
        }
    }
}
