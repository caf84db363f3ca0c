use http::{HeaderMap, HeaderValue, Uri};
use proptest::prelude::*;
use serde_json::Value;
use service_kit::{
    ProblemReply, Router, Routes,
    fields::{Headers, JsonObject, Query, WrongFields},
};
use site_protocol::Code;

use crate::support::{InMemory, json};

/// The wrong fields as `(field, detail)`, read from the answer that they lead to.
async fn told(refused: ProblemReply) -> Vec<(String, String)> {
    assert_eq!(refused.code(), Code::InvalidRequest);
    let answer = answer_of(refused).await;
    let fields = answer["fields"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    fields.iter().map(|field| (text(&field["field"]), text(&field["detail"]))).collect()
}

async fn answer_of(refused: ProblemReply) -> Value {
    let refused = std::sync::Mutex::new(Some(refused));
    let router: Router = Routes::new()
        .probe("/", move |_| {
            let refused = refused.lock().unwrap().take().unwrap();
            async { Err(refused) }
        })
        .build()
        .unwrap();
    json(InMemory::of(router, 1).get("/").await).await
}

fn uri(query: &str) -> Uri {
    format!("/?{query}").parse().unwrap()
}

fn number(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "must be a whole number")
}

fn pairs(told: &[(String, String)]) -> Vec<(&str, &str)> {
    told.iter().map(|(field, detail)| (field.as_str(), detail.as_str())).collect()
}

#[test]
fn parameters_are_decoded_and_parsed() {
    let (uri, mut wrong) = (uri("after=%37&name=a%20b+c"), WrongFields::new());
    let mut query = Query::of(&uri);
    assert_eq!(query.required("after", &mut wrong, number), Some(7));
    let name = query.optional("name", &mut wrong, |text| Ok::<_, String>(text.to_owned()));
    assert_eq!(name.as_deref(), Some("a b c"));
    assert_eq!(query.optional("absent", &mut wrong, number), None);
    query.finish(&mut wrong);
    assert!(wrong.finish().is_ok());
}

#[tokio::test]
async fn every_wrong_part_of_a_request_is_named_at_once() {
    let uri = uri("after=x&limit=1&limit=2&other=3&other=4");
    let mut headers = HeaderMap::new();
    headers.insert("runtime-generation", HeaderValue::from_static("one"));
    headers.insert("binary", HeaderValue::from_bytes(&[0xff]).unwrap());
    headers.append("twice", HeaderValue::from_static("1"));
    headers.append("twice", HeaderValue::from_static("1"));
    headers.insert("unknown", HeaderValue::from_static("is fine"));
    let body = br#"{"outcome": 7, "extra": 1, "again": 1, "again": 2}"#;

    let mut wrong = WrongFields::new();
    let mut query = Query::of(&uri);
    assert_eq!(query.required("after", &mut wrong, number), None);
    assert_eq!(query.optional("limit", &mut wrong, number), None);
    assert_eq!(query.required("wait", &mut wrong, number), None);
    query.finish(&mut wrong);
    let headers = Headers::of(&headers);
    assert_eq!(headers.required("runtime-generation", &mut wrong, number), None);
    assert_eq!(headers.required("missing", &mut wrong, number), None);
    assert_eq!(headers.optional("binary", &mut wrong, number), None);
    assert_eq!(headers.optional("twice", &mut wrong, number), None);
    let mut object = JsonObject::parse(body).unwrap();
    assert_eq!(object.required::<String>("outcome", &mut wrong, "a word"), None);
    assert!(object.optional_raw("again", &mut wrong).is_none());
    assert!(object.required_raw("output", &mut wrong).is_none());
    object.finish(&mut wrong);

    let told = told(wrong.accept(None::<()>).unwrap_err()).await;
    assert_eq!(
        pairs(&told),
        [
            ("after", "must be a whole number"),
            ("again", "is there more than once"),
            ("binary", "is not visible ASCII"),
            ("extra", "is not a field of this route"),
            ("limit", "is there more than once"),
            ("missing", "is missing"),
            ("other", "is not a parameter of this route"),
            ("other", "is not a parameter of this route"),
            ("outcome", "must be a word"),
            ("output", "is missing"),
            ("runtime-generation", "must be a whole number"),
            ("twice", "is there more than once"),
            ("wait", "is missing"),
        ]
    );
}

#[test]
fn the_exact_text_of_a_value_is_kept() {
    let body =
        "\n {\"output\" : { \"b\":1,\"a\" : [ 1.50, 1e2 ] } , \"n\":\t12345678901234567890.0 }";
    let (mut object, mut wrong) = (JsonObject::parse(body.as_bytes()).unwrap(), WrongFields::new());
    let output = object.required_raw("output", &mut wrong).unwrap();
    assert_eq!(output.get(), "{ \"b\":1,\"a\" : [ 1.50, 1e2 ] }");
    assert_eq!(object.optional_raw("n", &mut wrong).unwrap().get(), "12345678901234567890.0");
    object.finish(&mut wrong);
    assert!(wrong.finish().is_ok());
}

#[test]
fn a_field_is_found_by_its_decoded_name() {
    let mut wrong = WrongFields::new();
    let mut object = JsonObject::parse(br#"{"\u006eame": "x"}"#).unwrap();
    assert_eq!(object.required("name", &mut wrong, "a text"), Some("x".to_owned()));
    object.finish(&mut wrong);
    assert!(wrong.finish().is_ok());
}

#[test]
fn null_is_not_an_absent_field() {
    let mut wrong = WrongFields::new();
    let mut object = JsonObject::parse(br#"{"detail": null}"#).unwrap();
    assert_eq!(object.optional::<String>("detail", &mut wrong, "a text"), None);
    assert!(wrong.finish().is_err());
}

#[test]
fn what_is_no_json_object_is_malformed() {
    for body in [
        &b""[..],
        b" ",
        b"{",
        b"}",
        b"{}x",
        b"{} {}",
        b"[]",
        b"null",
        b"1",
        b"\"{}\"",
        b"{'a':1}",
        b"{\"a\":}",
        b"{\"a\":01}",
        b"{\"a\":1,}",
        b"{\"a\":NaN}",
        b"\xef\xbb\xbf{}",
        b"{\"a\":\"\xff\"}",
        b"{\"a\":{\"b\":[}}",
        b"{1:1}",
    ] {
        let refused = JsonObject::parse(body).err().map(|refused| refused.code());
        assert_eq!(refused, Some(Code::MalformedBody), "{:?}", String::from_utf8_lossy(body));
    }
}

#[test]
fn fields_without_measure_are_refused_early() {
    let body = |count: usize| {
        let fields: Vec<_> = (0..count).map(|number| format!("\"{number}\":0")).collect();
        format!("{{{}}}", fields.join(","))
    };
    assert!(JsonObject::parse(body(256).as_bytes()).is_ok());
    let refused = JsonObject::parse(body(257).as_bytes()).err();
    assert_eq!(refused.map(|refused| refused.code()), Some(Code::MalformedBody));
}

#[test]
fn nesting_without_measure_does_no_harm() {
    let body = format!("{{\"a\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let (mut object, mut wrong) = (JsonObject::parse(body.as_bytes()).unwrap(), WrongFields::new());
    assert_eq!(object.required::<Value>("a", &mut wrong, "shallow"), None);
}

#[tokio::test]
async fn the_report_does_not_grow_without_measure() {
    let long = "x".repeat(5000);
    let names: Vec<_> = (0..200).map(|number| format!("{number:03}{long}=1")).collect();
    let uri: Uri = format!("/?{}", names[..12].join("&")).parse().unwrap();
    let mut wrong = WrongFields::new();
    Query::of(&uri).finish(&mut wrong);
    for number in 0..188 {
        wrong.push(&format!("f{number}"), "is wrong");
    }
    let refused = wrong.finish().unwrap_err();
    let answer = answer_of(refused).await;
    assert_eq!(answer["fields"].as_array().unwrap().len(), 32);
    assert_eq!(answer["fields"][0]["field"].as_str().unwrap().len(), 64);
    assert_eq!(answer["detail"], "200 fields, query parameters or headers are wrong");
}

#[test]
fn a_missing_value_is_never_accepted() {
    assert_eq!(WrongFields::new().accept(Some(7)).unwrap(), 7);
    let refused = WrongFields::new().accept(None::<u8>).unwrap_err();
    assert_eq!(refused.code(), Code::Internal);
}

proptest! {
    #[test]
    fn any_body_is_refused_or_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = JsonObject::parse(&body).map(|object| object.finish(&mut WrongFields::new()));
    }

    #[test]
    fn each_value_of_an_object_is_kept_as_it_is(
        values in proptest::collection::vec("[0-9]{1,3}|\"[a-z ]{0,5}\"|\\[ *[1-9]? *\\]", 1..4)
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let pairs: Vec<_> =
            NAMES.iter().zip(&values).map(|(name, value)| format!("\"{name}\": {value} ")).collect();
        let body = format!("{{{}}}", pairs.join(","));
        // A number such as 01 is no JSON.
        if let Ok(mut object) = JsonObject::parse(body.as_bytes()) {
            let mut wrong = WrongFields::new();
            for (name, value) in NAMES.iter().zip(&values) {
                prop_assert_eq!(object.required_raw(name, &mut wrong).unwrap().get(), value);
            }
            object.finish(&mut wrong);
            prop_assert!(wrong.finish().is_ok());
        }
    }

    #[test]
    fn any_query_is_read_without_a_panic(query in "[!-~&&[^#<>\"`{}]]{0,60}") {
        if let Ok(uri) = format!("/?{query}").parse::<Uri>() {
            let mut wrong = WrongFields::new();
            let mut reader = Query::of(&uri);
            let _ = reader.optional("a", &mut wrong, number);
            reader.finish(&mut wrong);
        }
    }
}
