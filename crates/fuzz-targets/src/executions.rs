//! What is asked for of a Run.

use site_protocol::AuthorisationRequest;

use crate::heads::assert_problem;

/// What an Attempt wants to do reads alike by the type of the wire.
pub(crate) fn authorisation(bytes: &[u8]) {
    match site_api::parsers::authorisation(bytes) {
        Ok((attempt, action)) => {
            crate::taken();
            let wire: AuthorisationRequest = serde_json::from_slice(bytes).unwrap();
            assert_eq!(wire.attempt, attempt.get().unsigned_abs());
            let word = serde_json::to_string(&wire.action).unwrap();
            assert_eq!(word.trim_matches('"'), action.as_str());
            let again = serde_json::to_vec(&wire).unwrap();
            assert_eq!(site_api::parsers::authorisation(&again).unwrap(), (attempt, action));
        }
        Err(problem) => assert_problem(&problem),
    }
}

/// A tag that stands nowhere in a list is not named by it, and one that is named stays so whatever
/// comes behind it.
pub(crate) fn entity_tags(bytes: &[u8]) {
    let Ok(list) = std::str::from_utf8(bytes) else { return };
    let tag = "0123456789abcdef";
    let every = list.trim_matches([' ', '\t']) == "*";
    if site_api::parsers::names_tag(tag, list) {
        crate::taken();
        assert!(every || list.contains(&format!("\"{tag}\"")), "{list:?}");
        assert!(every || site_api::parsers::names_tag(tag, &format!("{list}, \"x\"")));
    }
    // In front of everything it is found, behind a list that can be read as well.
    assert!(site_api::parsers::names_tag(tag, &format!("\"{tag}\",{list}")));
    assert!(site_api::parsers::names_tag(tag, &format!("W/\"{tag}\" , {list}")));
}
