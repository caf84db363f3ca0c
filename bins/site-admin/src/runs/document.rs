//! The JSON document of `site-admin runs accept`.

use execution_core::{
    Commit, Deadline, Environment, GitRef, Invalid, Material, MemberId, NewRun, Place, ProjectId,
    Repository, RepositoryInstance, RepositoryPath, RepositoryProject, RunId, SiteId,
};
use service_kit::{
    ProblemReply,
    fields::{JsonObject, WrongFields},
};

use crate::commands::looks_like_a_field;

/// Reads a document; the reason of a failure repeats no value.
///
/// # Errors
///
/// Every wrong field, one on each line, or that the document is no JSON object.
pub fn parse(text: &str) -> Result<NewRun, String> {
    let mut wrong = WrongFields::new();
    let mut document = object(text)?;
    let run = run(&mut document, &mut wrong);
    finish(&document, &mut wrong);
    wrong.accept(run).map_err(|refusal| told(&refusal))
}

fn object(text: &str) -> Result<JsonObject<'_>, String> {
    JsonObject::parse(text.as_bytes()).map_err(|refusal| refusal.detail().to_owned())
}

/// The Run, where every field of it is right. Every field is read, whatever is wrong before it.
fn run(document: &mut JsonObject<'_>, wrong: &mut WrongFields) -> Option<NewRun> {
    let id = text(document, "runId", wrong, RunId::parse);
    let project = text(document, "projectId", wrong, ProjectId::parse);
    let member = text(document, "memberId", wrong, MemberId::parse);
    let site = text(document, "site", wrong, SiteId::parse);
    let environment = text(document, "environment", wrong, Environment::parse);
    let deadline = text(document, "deadline", wrong, Deadline::parse);
    let repository = document.required_raw("repository", wrong);
    let repository = repository.and_then(|raw| repository_of(raw.get(), wrong));
    let material = document.required_raw("material", wrong);
    let material = material.and_then(|raw| wrong.check("material", Material::parse(raw.get())));
    Some(NewRun {
        id: id?,
        project: project?,
        member: member?,
        place: Place { site: site?, environment: environment? },
        deadline: deadline?,
        repository: repository?,
        material: material?,
    })
}

fn repository_of(raw: &str, wrong: &mut WrongFields) -> Option<Repository> {
    let Ok(mut object) = object(raw) else {
        wrong.push("repository", "must be an object");
        return None;
    };
    let mut inner = WrongFields::new();
    let instance = text(&mut object, "instance", &mut inner, RepositoryInstance::parse);
    // The text of a JSON number that is a project's has one spelling.
    let project = object
        .required_raw("projectId", &mut inner)
        .and_then(|number| inner.check("projectId", RepositoryProject::parse(number.get())));
    let path = text(&mut object, "path", &mut inner, RepositoryPath::parse);
    let reference = text(&mut object, "ref", &mut inner, GitRef::parse);
    let commit = text(&mut object, "commit", &mut inner, Commit::parse);
    finish(&object, &mut inner);
    wrong.nest("repository", inner);
    Some(Repository {
        instance: instance?,
        project: project?,
        path: path?,
        reference: reference?,
        commit: commit?,
    })
}

fn text<T>(
    object: &mut JsonObject<'_>,
    name: &'static str,
    wrong: &mut WrongFields,
    parse: fn(&str) -> Result<T, Invalid>,
) -> Option<T> {
    let text = object.required::<String>(name, wrong, "a text")?;
    wrong.check(name, parse(&text))
}

/// A field that nobody asked for is wrong.
fn finish(object: &JsonObject<'_>, wrong: &mut WrongFields) {
    for name in object.unknown() {
        wrong.push(name, "is not a known field");
    }
}

/// Every wrong field on a line of its own. A name that is none of ours is told where it looks like
/// one.
fn told(refusal: &ProblemReply) -> String {
    let fields = refusal.to_problem("").fields;
    let lines = fields.iter().map(|wrong| {
        let usual = wrong.field.split('.').all(looks_like_a_field);
        let name = if usual { wrong.field.as_str() } else { "a field" };
        format!("\n{name}: {}", wrong.detail)
    });
    format!("the document is wrong:{}", lines.collect::<String>())
}
