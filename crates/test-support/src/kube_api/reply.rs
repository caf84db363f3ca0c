//! From a request to its answer, without faults and with them.

use serde_json::{Value, json};

use super::{
    Fault,
    cluster::{Cluster, Identity},
    token::API_AUDIENCE,
};
use crate::peer::{Received, Reply};

const PATH: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenReview";
const NODE: &str = "node-1";

/// The answer to a request.
pub(super) fn of(cluster: &mut Cluster, request: &Received, fault: Option<Fault>) -> Reply {
    match fault {
        None => answer(cluster, request),
        Some(Fault::CallerUnknown) => unknown_caller(),
        Some(Fault::CallerForbidden) => forbidden("system:anonymous"),
        Some(Fault::TooManyRequests) => {
            let mut reply = status(429, "TooManyRequests", "too many requests");
            if let Reply::Whole { extra_head, .. } = &mut reply {
                "retry-after: 1\r\n".clone_into(extra_head);
            }
            reply
        }
        Some(Fault::Internal) => status(500, "InternalError", "an internal error"),
        Some(Fault::Html) => Reply::html(200),
        Some(Fault::EmptyBody) => Reply::json(201, ""),
        Some(Fault::Silence) => Reply::Silence,
        Some(Fault::SlowDrip | Fault::Cut) => {
            let Reply::Whole { status, body, .. } = answer(cluster, request) else {
                return Reply::Silence;
            };
            let head = format!(
                "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\n\r\n",
                body.len()
            );
            let bytes = [head.as_bytes(), &body].concat();
            if fault == Some(Fault::Cut) {
                Reply::Cut(bytes[..bytes.len() - body.len() / 2].to_vec())
            } else {
                Reply::Drip(bytes, std::time::Duration::from_millis(100))
            }
        }
        Some(Fault::HugeBody) => changed(cluster, request, |review| {
            review["metadata"]["annotations"] = json!({ "more": "x".repeat(1024 * 1024) });
        }),
        Some(Fault::AnotherToken) => changed(cluster, request, |review| {
            let token = review["spec"]["token"].as_str().unwrap_or_default();
            // As long as the one that was sent, and as well formed.
            review["spec"]["token"] = format!("A{}", &token[1..]).into();
        }),
        Some(Fault::AnotherUid) => changed(cluster, request, |review| {
            if let Some(uid) = review["status"]["user"].get_mut("uid") {
                *uid = "another".into();
            }
        }),
        Some(Fault::NoAudiences) => changed(cluster, request, |review| {
            if let Some(status) = review["status"].as_object_mut() {
                status.remove("audiences");
            }
        }),
    }
}

/// The token that a request asks about.
pub(super) fn token_of(request: &Received) -> Option<String> {
    let review: Value = serde_json::from_slice(&request.body).ok()?;
    review["spec"]["token"].as_str().map(str::to_owned)
}

fn answer(cluster: &mut Cluster, request: &Received) -> Reply {
    let bearer = request.headers.get("authorization").and_then(|value| value.split_once(' '));
    let caller = match bearer {
        None => return forbidden("system:anonymous"),
        Some((_, token)) => cluster.authenticate(token, &[API_AUDIENCE.to_owned()]),
    };
    let Ok(caller) = caller else { return unknown_caller() };
    if request.target != PATH {
        return status(404, "NotFound", "the server could not find the requested resource");
    }
    if request.method != "POST" {
        let message = "the server does not allow this method on the requested resource";
        return status(405, "MethodNotAllowed", message);
    }
    if !cluster.may_review(&caller) {
        return forbidden(&caller.claims.subject());
    }
    let Ok(review) = serde_json::from_slice::<Value>(&request.body) else {
        return status(400, "BadRequest", "the object provided is unrecognized");
    };
    if review["kind"] != KIND || review["apiVersion"] != VERSION {
        return status(400, "BadRequest", "the object provided is of another kind");
    }
    let Some(token) = review["spec"]["token"].as_str().filter(|token| !token.is_empty()) else {
        let message = "token is required for TokenReview in authentication";
        return status(400, "BadRequest", message);
    };
    let asked = review["spec"]["audiences"].as_array().cloned().unwrap_or_default();
    let mut audiences: Vec<_> = asked.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(API_AUDIENCE.to_owned());
    }
    let verdict = match cluster.authenticate(token, &audiences) {
        Ok(identity) => accepted(&identity),
        Err(reason) => json!({ "user": {}, "error": reason }),
    };
    let body = json!({
        "kind": KIND,
        "apiVersion": VERSION,
        "metadata": { "creationTimestamp": null },
        "spec": review["spec"],
        "status": verdict,
    });
    Reply::json(201, body.to_string())
}

fn accepted(identity: &Identity) -> Value {
    let claims = &identity.claims;
    let mut extra = json!({
        "authentication.kubernetes.io/credential-id": [format!("JTI={}", claims.id)],
    });
    if let Some(pod) = &claims.pod {
        extra["authentication.kubernetes.io/node-name"] = json!([NODE]);
        extra["authentication.kubernetes.io/pod-name"] = json!([pod.name]);
        extra["authentication.kubernetes.io/pod-uid"] = json!([pod.uid]);
    }
    json!({
        "authenticated": true,
        "user": {
            "username": claims.subject(),
            "uid": claims.account.uid,
            "groups": [
                "system:serviceaccounts",
                format!("system:serviceaccounts:{}", claims.namespace),
                "system:authenticated",
            ],
            "extra": extra,
        },
        "audiences": identity.audiences,
    })
}

/// The good answer with a change; another one as it is.
fn changed(cluster: &mut Cluster, request: &Received, change: impl FnOnce(&mut Value)) -> Reply {
    let mut reply = answer(cluster, request);
    if let Reply::Whole { body, .. } = &mut reply
        && let Ok(mut review) = serde_json::from_slice::<Value>(body)
        && review["kind"] == KIND
    {
        change(&mut review);
        *body = review.to_string().into_bytes();
    }
    reply
}

fn unknown_caller() -> Reply {
    status(401, "Unauthorized", "Unauthorized")
}

fn forbidden(user: &str) -> Reply {
    let message = format!(
        "tokenreviews.authentication.k8s.io is forbidden: User \"{user}\" cannot create resource \
         \"tokenreviews\" in API group \"authentication.k8s.io\" at the cluster scope"
    );
    status(403, "Forbidden", &message)
}

fn status(code: u16, reason: &str, message: &str) -> Reply {
    let body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    });
    Reply::json(code, body.to_string())
}
