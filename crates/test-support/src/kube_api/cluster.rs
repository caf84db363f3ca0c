//! What the server knows, and who a token is by it.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use tokio::time::Instant;

use super::token::{Claims, TokenRequest, now};
use crate::Random;

/// A namespace and a name in it.
type Key = (String, String);

/// A thing of the cluster. One that is made again has another uid.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) name: String,
    pub(super) uid: String,
}

/// Who a token is.
#[derive(Clone)]
pub(super) struct Identity {
    pub(super) claims: Claims,
    /// Those of its audiences that were asked for.
    pub(super) audiences: Vec<String>,
}

pub(super) struct Cluster {
    accounts: HashMap<Key, String>,
    pods: HashMap<Key, String>,
    reviewers: HashSet<Key>,
    issued: HashMap<String, Claims>,
    successes: HashMap<(String, Vec<String>), (Identity, Instant)>,
    successes_kept: Duration,
    random: Random,
}

impl Cluster {
    pub(super) fn new(successes_kept: Duration) -> Self {
        Self {
            accounts: HashMap::new(),
            pods: HashMap::new(),
            reviewers: HashSet::new(),
            issued: HashMap::new(),
            successes: HashMap::new(),
            successes_kept,
            random: Random::from_seed(RandomState::new().hash_one(0)),
        }
    }

    pub(super) fn create_account(&mut self, namespace: &str, name: &str) -> String {
        let uid = self.uid();
        self.accounts.insert(key(namespace, name), uid.clone());
        uid
    }

    pub(super) fn delete_account(&mut self, namespace: &str, name: &str) {
        self.accounts.remove(&key(namespace, name));
    }

    pub(super) fn allow_reviews(&mut self, namespace: &str, name: &str) {
        self.reviewers.insert(key(namespace, name));
    }

    pub(super) fn create_pod(&mut self, namespace: &str, name: &str) -> String {
        let uid = self.uid();
        self.pods.insert(key(namespace, name), uid.clone());
        uid
    }

    pub(super) fn delete_pod(&mut self, namespace: &str, name: &str) {
        self.pods.remove(&key(namespace, name));
    }

    pub(super) fn issue(&mut self, request: TokenRequest<'_>) -> String {
        let TokenRequest { namespace, account, audiences, pod, life } = request;
        let known = |objects: &HashMap<Key, String>, name: &str| {
            let uid = objects.get(&key(namespace, name));
            let uid = uid.unwrap_or_else(|| panic!("there is no {name} in {namespace}"));
            Object { name: name.to_owned(), uid: uid.clone() }
        };
        let account = known(&self.accounts, account);
        let pod = pod.map(|pod| known(&self.pods, pod));
        let claims = Claims {
            namespace: namespace.to_owned(),
            account,
            audiences: audiences.iter().map(|&audience| audience.to_owned()).collect(),
            pod,
            expires_at: now() + life.as_secs(),
            id: self.uid(),
        };
        let token = claims.to_jwt(&mut self.random);
        self.issued.insert(token.clone(), claims);
        token
    }

    pub(super) fn forget(&mut self, token: &str) {
        self.issued.remove(token);
        self.successes.retain(|(known, _), _| known != token);
    }

    /// Whether an account may ask for reviews.
    pub(super) fn may_review(&self, identity: &Identity) -> bool {
        let Claims { namespace, account, .. } = &identity.claims;
        self.reviewers.contains(&key(namespace, &account.name))
    }

    /// Who a token is for somebody of one of the `asked` audiences, or why it is nobody. A success
    /// is kept for a while, whatever happens meanwhile; a failure never is.
    pub(super) fn authenticate(
        &mut self,
        token: &str,
        asked: &[String],
    ) -> Result<Identity, String> {
        // As the server reads the header into which it puts the token.
        let token = token.trim_ascii();
        let now = Instant::now();
        let question = (token.to_owned(), asked.to_vec());
        if let Some((identity, until)) = self.successes.get(&question)
            && now < *until
        {
            return Ok(identity.clone());
        }
        let identity = self.identity(token, asked)?;
        self.successes.insert(question, (identity.clone(), now + self.successes_kept));
        Ok(identity)
    }

    fn identity(&self, token: &str, asked: &[String]) -> Result<Identity, String> {
        let claims = self.issued.get(token).ok_or("invalid bearer token")?;
        let refused = |reason: String| Err(format!("[invalid bearer token, {reason}]"));
        if now() >= claims.expires_at {
            return refused("service account token has expired".to_owned());
        }
        let both = claims.audiences.iter().filter(|audience| asked.contains(audience));
        let audiences: Vec<_> = both.cloned().collect();
        if audiences.is_empty() {
            let has = &claims.audiences;
            return refused(format!(
                "token audiences {has:?} is invalid for the target audiences {asked:?}"
            ));
        }
        let account = &claims.account;
        match self.accounts.get(&key(&claims.namespace, &account.name)) {
            None => return refused(format!("serviceaccounts \"{}\" not found", account.name)),
            Some(uid) if *uid != account.uid => {
                let old = &account.uid;
                return refused(format!(
                    "service account UID ({uid}) does not match claim ({old})"
                ));
            }
            Some(_) => {}
        }
        if let Some(pod) = &claims.pod
            && self.pods.get(&key(&claims.namespace, &pod.name)) != Some(&pod.uid)
        {
            return refused("service account token has been invalidated".to_owned());
        }
        Ok(Identity { claims: claims.clone(), audiences })
    }

    fn uid(&mut self) -> String {
        let (high, low) = (self.random.number(), self.random.number());
        let hex = format!("{high:016x}{low:016x}");
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }
}

fn key(namespace: &str, name: &str) -> Key {
    (namespace.to_owned(), name.to_owned())
}
