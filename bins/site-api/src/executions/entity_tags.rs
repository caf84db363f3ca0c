//! `ETag` and `If-None-Match`, RFC 9110, sections 8.8.3 and 13.1.2.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use service_kit::{ProblemReply, Response, router::Answer};

/// An entity tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityTag {
    text: String,
    /// Answers with it may differ in some bytes.
    is_weak: bool,
}

impl EntityTag {
    /// The tag of bytes that are always the same: their digest, as hexadecimal characters.
    pub(crate) fn strong(digest: &str) -> Self {
        Self { text: digest.to_owned(), is_weak: false }
    }

    /// The tag of what an answer says, which tells the time besides.
    pub(crate) fn weak(digest: &str) -> Self {
        Self { text: digest.to_owned(), is_weak: true }
    }

    /// Whether `If-None-Match` names it: by itself, weakly, or by `*`. A list that can't be read names
    /// nothing from there on: the caller then gets what it asks for once more.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::IF_NONE_MATCH).iter();
        values.filter_map(|value| value.to_str().ok()).any(|list| is_in(&self.text, list))
    }

    /// The answer to who has what it tags.
    pub(crate) fn not_modified(&self) -> Answer {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        self.on(response)
    }

    /// An answer with the tag.
    pub(crate) fn on(&self, mut response: Response) -> Answer {
        let mark = if self.is_weak { "W/" } else { "" };
        let tag = HeaderValue::from_str(&format!("{mark}\"{}\"", self.text));
        response.headers_mut().insert(header::ETAG, tag.map_err(ProblemReply::internal)?);
        Ok(response)
    }
}

/// Whether a list of entity tags has one of this text, or is `*`.
pub(crate) fn is_in(tag: &str, list: &str) -> bool {
    let blank = [' ', '\t'];
    if list.trim_matches(blank) == "*" {
        return true;
    }
    let mut rest = list;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((found, after)) = parse_first(rest) else { return false };
        if found == tag {
            return true;
        }
        let after = after.trim_start_matches(blank);
        if !after.starts_with(',') {
            return false;
        }
        rest = after;
    }
}

/// The text of the tag that a list begins with, and what comes behind it. Weak or strong makes no
/// difference here.
fn parse_first(list: &str) -> Option<(&str, &str)> {
    let opaque = list.strip_prefix("W/").unwrap_or(list);
    opaque.strip_prefix('"')?.split_once('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_in_a_list_in_whatever_form() {
        for list in [
            "\"a\"",
            "W/\"a\"",
            "*",
            " * ",
            "\"b\", \"a\"",
            "\"b\",\"a\"",
            "W/\"b\" , W/\"a\",\"c\"",
            ", ,\"a\"",
            "\"b,\", \"a\"",
            "\"a\" nonsense",
        ] {
            assert!(is_in("a", list), "{list}");
        }
    }

    #[test]
    fn what_is_no_tag_of_its_own_names_nothing() {
        for list in [
            "",
            "a",
            "\"a",
            "a\"",
            "\"A\"",
            "\"ab\"",
            "\"b\"",
            "\"b\" \"a\"",
            "b, \"a\"",
            "w/\"a\"",
            "W/ \"a\"",
            "W/a",
            "\"*\"",
            "*, \"b\"",
            "\"b\", *",
            "\"x\"a\"",
            ",",
        ] {
            assert!(!is_in("a", list), "{list}");
        }
    }

    #[test]
    fn several_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        let tag = EntityTag::strong("a");
        assert!(!tag.is_in(&headers));
        headers.append(header::IF_NONE_MATCH, HeaderValue::from_static("\"b\""));
        headers.append(header::IF_NONE_MATCH, HeaderValue::from_bytes(b"\"\xff\"").unwrap());
        assert!(!tag.is_in(&headers));
        headers.append(header::IF_NONE_MATCH, HeaderValue::from_static("W/\"a\""));
        assert!(tag.is_in(&headers));
    }
}
