//! Runs and bindings: the document that describes a Run, and the names in both.

use execution_core::{
    Action, AttemptNumber, Commit, Deadline, Environment, GitRef, Material, MemberId, ProjectId,
    RepositoryInstance, RepositoryPath, RepositoryProject, RunId, SiteId,
};
use resource_provisioning::{Account, BindingId, Gid, Uid, UnixUser};
use serde_json::Value;
use site_admin::parsers::document;
use url::Url;

use crate::{SECRET, assert_quiet, with_secrets};

/// A document that is taken says what another reader finds in it, and its material stands in it as it
/// is kept; what is refused is told without what stands in it.
pub(crate) fn run_document(bytes: &[u8]) {
    let Some(text) = with_secrets(bytes, SECRET) else { return };
    match document::parse(&text) {
        Ok(run) => {
            crate::taken();
            let read: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
                // That reader takes no number beyond its own, and no half of a pair of surrogates:
                // the material may have them.
                assert!(
                    error.to_string().contains("number out of range")
                        || error.to_string().contains("surrogate")
                        || error.to_string().contains("hex escape")
                        || error.to_string().contains("recursion"),
                    "{error}"
                );
                Value::Null
            });
            assert!(text.contains(run.material.as_str()));
            assert_eq!(Material::parse(run.material.as_str()).as_ref(), Ok(&run.material));
            if read.is_null() {
                return;
            }
            assert_eq!(read.as_object().unwrap().len(), 8);
            let repository = &run.repository;
            for (pointer, value) in [
                ("/runId", run.id.as_str()),
                ("/projectId", run.project.as_str()),
                ("/memberId", run.member.as_str()),
                ("/site", run.place.site.as_str()),
                ("/environment", run.place.environment.as_str()),
                ("/repository/instance", repository.instance.as_str()),
                ("/repository/path", repository.path.as_str()),
                ("/repository/ref", repository.reference.as_str()),
                ("/repository/commit", repository.commit.as_str()),
            ] {
                assert_eq!(read.pointer(pointer).unwrap(), value, "{pointer}");
            }
            assert_eq!(read["repository"]["projectId"], repository.project.get());
            assert_eq!(read["repository"].as_object().unwrap().len(), 5);
            let material: Value = serde_json::from_str(run.material.as_str()).unwrap();
            assert_eq!(read["material"], material);
            let deadline = Deadline::parse(read["deadline"].as_str().unwrap()).unwrap();
            assert_eq!(deadline, run.deadline);
            assert_eq!(Deadline::parse(&deadline.time().to_rfc3339()), Ok(deadline));
        }
        Err(told) => {
            assert_quiet(&told, SECRET);
            let printable = |character: char| character == '\n' || !character.is_control();
            assert!(told.len() <= 8192 && told.chars().all(printable), "{told:?}");
        }
    }
}

/// What is taken prints back, is no longer than its rule says, is the same for all who read it, and
/// stands in a path as it is.
pub(crate) fn run_names(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let text = text.strip_suffix('\n').unwrap_or(text);
    let printed = |taken: Option<&str>, longest: usize| {
        let Some(name) = taken else { return };
        crate::taken();
        assert!(name == text && (1..=longest).contains(&name.len()), "{text:?}");
        assert!(!name.chars().any(|c| c.is_control() || c.is_whitespace()), "{text:?}");
    };
    let site = SiteId::parse(text).ok();
    printed(site.as_ref().map(SiteId::as_str), 64);
    printed(ProjectId::parse(text).as_ref().map(ProjectId::as_str).ok(), 128);
    let member = MemberId::parse(text).ok();
    printed(member.as_ref().map(MemberId::as_str), 255);
    let instance = RepositoryInstance::parse(text).ok();
    printed(instance.as_ref().map(RepositoryInstance::as_str), 64);
    printed(GitRef::parse(text).as_ref().map(GitRef::as_str).ok(), 255);
    printed(Commit::parse(text).as_ref().map(Commit::as_str).ok(), 64);
    printed(Action::parse(text).map(Action::as_str).ok(), 9);
    printed(Account::parse(text).as_ref().map(Account::as_str).ok(), 64);
    let user = UnixUser::parse(text).ok();
    printed(user.as_ref().map(UnixUser::as_str), 32);
    assert!(user.is_none() || text != "root");

    // Contexts that name the same thing read its name alike.
    assert_eq!(site.is_some(), site_coordination::SiteId::parse(text).is_ok());
    assert_eq!(site.is_some(), resource_provisioning::SiteId::parse(text).is_ok());
    assert_eq!(member.is_some(), resource_provisioning::MemberId::parse(text).is_ok());
    let environment = Environment::parse(text).map(Environment::as_str).ok();
    let commands = site_coordination::Environment::parse(text);
    assert_eq!(environment, commands.map(site_coordination::Environment::as_str).ok());

    if let Ok(run) = RunId::parse(text) {
        printed(Some(run.as_str()), 128);
        // Commands may belong to any Run that was accepted.
        assert!(site_coordination::RunId::parse(text).is_ok(), "{text:?}");
        stands_in_a_path(text);
    }
    if let Ok(path) = RepositoryPath::parse(text) {
        printed(Some(path.as_str()), 1024);
        assert!(path.as_str().split('/').count() >= 2);
        stands_in_a_path(text);
    }
    numbers(text);
}

/// Nobody who reads a URL makes anything else of it.
fn stands_in_a_path(text: &str) {
    let url = Url::parse(&format!("https://host/a/{text}/z")).unwrap();
    assert_eq!(url.path(), format!("/a/{text}/z"));
    assert!(url.query().is_none() && url.fragment().is_none(), "{text:?}");
}

/// A number has one spelling, and its range.
fn numbers(text: &str) {
    let number: Option<i64> = text.parse().ok().filter(|number: &i64| number.to_string() == text);
    let within = |lowest: i64, highest: i64| number.filter(|n| (lowest..=highest).contains(n));
    let attempt = AttemptNumber::parse(text).ok().map(|attempt| i64::from(attempt.get()));
    assert_eq!(attempt, within(1, 1000));
    let project = RepositoryProject::parse(text).ok().map(RepositoryProject::get);
    assert_eq!(project, within(1, i64::MAX));
    assert_eq!(BindingId::parse(text).ok().map(BindingId::get), within(1, i64::MAX));
    let somebody = |id: &i64| ![65_534, 65_535].contains(id);
    let highest = i64::from(i32::MAX);
    assert_eq!(Uid::parse(text).ok().map(Uid::get), within(1000, highest).filter(somebody));
    assert_eq!(Gid::parse(text).ok().map(Gid::get), within(100, highest).filter(somebody));
}
