//! The protocol as an OpenAPI 3.1 document, made of the wire types, the codes and a table of
//! routes. `docs/openapi.yaml` is this document; nothing here is used while requests are served.

mod routes;

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::{
    Action, Attempt, AttemptState, Authorisation, AuthorisationRequest, BatchAnswer, BatchedAnswer,
    BatchedResult, Cancelled, Code, Command, CommandPage, Digest, Execution, FieldError, Head,
    Outcome, OutputReceipt, PROBLEM_CONTENT_TYPE, Problem, Receipt, ReceiptAndNext, ResultBatch,
    ResultBody, Run, RunRepository, RunState, SNAPSHOT_CONTENT_TYPE, Session, SessionRequest,
    Shape, SshAcknowledged, SshAcknowledgement, SshAttested, SshChange, SshChanges, SshFailure,
    SshOperation, SshSnapshotEnd, SshSnapshotHead, SshSnapshotKey,
};

pub use routes::{Body, Caller, Form, Parameter, ROUTES, Route, Success, Values};

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Site API",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The wire of the Site API. docs/PROTOCOL.md says how it is used, \
                docs/ERRORS.md lists the codes. Limits are settings; the ranges here are those of \
                their defaults.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{
            "url": "https://{host}:{port}",
            "variables": {
                "host": { "default": "site-api" },
                "port": { "default": "8443" },
            },
        }],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {
                "runtime": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "scnb_<id>.<secret>",
                    "description": "A native bearer of the scope commands.",
                },
                "sshAgent": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "scnb_<id>.<secret>",
                    "description": "A native bearer of the scope ssh-access.",
                },
                "member": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "An access token of the login issuer, for this API alone. Beto \
                        decides what the member may do.",
                },
                "serviceAccount": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A projected token of a Kubernetes ServiceAccount, bound to its \
                        Pod, for the audience site-control. The cluster's TokenReview decides \
                        whose it is, the listener's maps whether that account is a Runtime, and of \
                        which stream, or an Admission, which only reads accepted Runs.",
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "security": match route.caller {
            Caller::Anyone => json!([]),
            Caller::Runtime | Caller::Reader => json!([{ "runtime": [] }, { "serviceAccount": [] }]),
            Caller::Member => json!([{ "member": [] }]),
            Caller::SshAgent => json!([{ "sshAgent": [] }]),
        },
        "responses": responses(route),
    });
    let parameters = parameters(route);
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = &route.body {
        operation["requestBody"] = match body {
            Body::Json { schema } => content("application/json", reference(schema)),
            Body::Bytes => {
                content("application/octet-stream", json!({ "description": "At most 16 MiB." }))
            }
        };
        operation["requestBody"]["required"] = true.into();
    }
    operation
}

/// Those of the path, the headers and the query, in this order.
fn parameters(route: &Route) -> Vec<Value> {
    let places = [("path", route.path_parts), ("header", route.headers), ("query", route.query)];
    let all = places.into_iter().flat_map(|(place, parameters)| {
        parameters.iter().map(move |parameter| {
            json!({
                "name": parameter.name,
                "in": place,
                "required": place == "path" || parameter.required,
                "description": parameter.meaning,
                "schema": values(parameter.values),
            })
        })
    });
    all.collect()
}

fn values(values: Values) -> Value {
    match values {
        Values::Number { least, most, default } => {
            let mut schema = json!({ "type": "integer", "format": "int64", "minimum": least });
            if let Some(most) = most {
                schema["maximum"] = most.into();
            }
            if let Some(default) = default {
                schema["default"] = default.into();
            }
            schema
        }
        Values::Text { pattern } => json!({ "type": "string", "pattern": pattern }),
        Values::Digest => reference("Digest"),
        Values::EntityTags => json!({ "type": "string" }),
    }
}

fn responses(route: &Route) -> Value {
    let mut responses = Map::new();
    for success in route.answers {
        let schema = match success.schemas {
            [] => json!({ "type": "object" }),
            [schema] => reference(schema),
            several => {
                json!({ "oneOf": several.iter().map(|one| reference(one)).collect::<Vec<_>>() })
            }
        };
        let mut response = match success.form {
            Form::Json => content("application/json", schema),
            Form::JsonLines => content(SNAPSHOT_CONTENT_TYPE, schema),
            Form::Octets => content("application/octet-stream", json!({})),
            Form::Nothing => json!({}),
        };
        response["description"] = success.meaning.into();
        response["headers"] = json!({ "x-request-id": request_id() });
        if route.is_tagged() {
            response["headers"]["ETag"] = json!({
                "description": "a strong tag, another one as soon as what it tags is",
                "required": true,
                "schema": { "type": "string" },
            });
        }
        responses.insert(success.status.to_string(), response);
    }
    let codes: Vec<_> = route.codes().collect();
    let mut statuses: Vec<_> = codes.iter().map(|code| code.status()).collect();
    statuses.dedup();
    for status in statuses {
        let codes: Vec<_> = codes.iter().copied().filter(|code| code.status() == status).collect();
        responses.insert(status.to_string(), refusal(status, &codes));
    }
    responses.into()
}

/// The problems of one status.
fn refusal(status: u16, codes: &[Code]) -> Value {
    let words: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
    let mut properties = Map::new();
    properties.insert("code".to_owned(), json!({ "enum": words }));
    for member in codes.iter().flat_map(|code| code.members()) {
        let mut schema = match member.shape {
            Shape::Number => json!({ "type": "integer", "format": "int64", "minimum": 0 }),
            Shape::Digest => reference("Digest"),
            Shape::Time => json!({ "type": "string", "format": "date-time" }),
        };
        schema["description"] = member.meaning.into();
        properties.insert(member.name.to_owned(), schema);
    }
    let schema = json!({ "allOf": [reference("Problem"), { "properties": properties }] });
    let mut response = content(PROBLEM_CONTENT_TYPE, schema);
    response["description"] = words.join(", ").into();
    let mut headers = json!({ "x-request-id": request_id() });
    let header = |meaning: &str| json!({ "description": meaning, "required": true, "schema": { "type": "string" } });
    match status {
        401 => headers["WWW-Authenticate"] = header("Bearer"),
        405 => headers["Allow"] = header("the methods of the path"),
        503 => headers["Retry-After"] = header("whole seconds"),
        _ => {}
    }
    response["headers"] = headers;
    response
}

fn request_id() -> Value {
    json!({
        "description": "the request's id, as in the log",
        "required": true,
        "schema": { "type": "string" },
    })
}

fn content(content_type: &str, schema: Value) -> Value {
    json!({ "content": { content_type: { "schema": schema } } })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The wire types. What a server receives has no other fields.
fn schemas() -> Value {
    let mut schemas = Map::new();
    answer::<Action>(&mut schemas);
    answer::<Attempt>(&mut schemas);
    answer::<AttemptState>(&mut schemas);
    answer::<Authorisation>(&mut schemas);
    answer::<BatchAnswer>(&mut schemas);
    answer::<BatchedAnswer>(&mut schemas);
    answer::<Cancelled>(&mut schemas);
    answer::<Command>(&mut schemas);
    answer::<CommandPage>(&mut schemas);
    answer::<Digest>(&mut schemas);
    answer::<Execution>(&mut schemas);
    answer::<FieldError>(&mut schemas);
    answer::<Head>(&mut schemas);
    answer::<Outcome>(&mut schemas);
    answer::<OutputReceipt>(&mut schemas);
    answer::<Problem>(&mut schemas);
    answer::<Receipt>(&mut schemas);
    answer::<ReceiptAndNext>(&mut schemas);
    answer::<Run>(&mut schemas);
    answer::<RunRepository>(&mut schemas);
    answer::<RunState>(&mut schemas);
    answer::<Session>(&mut schemas);
    answer::<SshAcknowledged>(&mut schemas);
    answer::<SshAttested>(&mut schemas);
    answer::<SshChange>(&mut schemas);
    answer::<SshChanges>(&mut schemas);
    answer::<SshOperation>(&mut schemas);
    answer::<SshSnapshotEnd>(&mut schemas);
    answer::<SshSnapshotHead>(&mut schemas);
    answer::<SshSnapshotKey>(&mut schemas);
    request::<AuthorisationRequest>(&mut schemas);
    request::<BatchedResult>(&mut schemas);
    request::<ResultBatch>(&mut schemas);
    request::<ResultBody>(&mut schemas);
    request::<SessionRequest>(&mut schemas);
    request::<SshAcknowledgement>(&mut schemas);
    request::<SshFailure>(&mut schemas);
    schemas.into()
}

fn answer<T: ToSchema + PartialSchema>(schemas: &mut Map<String, Value>) {
    // A schema is a tree of texts and numbers: it always has a JSON form.
    let mut schema = serde_json::to_value(T::schema()).unwrap_or_default();
    describe(&mut schema);
    schemas.insert(T::name().into_owned(), schema);
}

fn request<T: ToSchema + PartialSchema>(schemas: &mut Map<String, Value>) {
    answer::<T>(schemas);
    schemas[T::name().as_ref()]["additionalProperties"] = false.into();
}

/// Turns the documentation of Rust into descriptions: the first paragraph, without its line ends
/// and links. What comes after it is for readers of the code.
fn describe(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "description" => {
                        let first = text.split("\n\n").next().unwrap_or_default();
                        *text = first.replace('\n', " ").replace("[`", "`").replace("`]", "`");
                    }
                    value => describe(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(describe),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
