//! The policy file of `site-admin beto respond`: what is allowed, and nothing else is.

use beto::{About, Decision, Name, Permission, Question};
use serde_json::value::RawValue;
use service_kit::fields::{JsonObject, WrongFields};

/// The only version there is.
const VERSION: u64 = 1;
/// The largest file, in bytes.
const LIMIT_BYTES: usize = 1024 * 1024;
/// Stands for every name.
const ANY: &str = "*";

/// What a policy file allows.
#[derive(Debug)]
pub struct Policy(Vec<Rule>);

/// What one rule allows.
#[derive(Debug)]
struct Rule {
    permission: Permission,
    member: Pattern,
    /// The project, or the tenant, whichever the permission is about.
    about: Pattern,
    site: Pattern,
}

#[derive(Debug)]
enum Pattern {
    Any,
    Is(Name),
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    ///
    /// Every mistake in it, up to some dozens, a line each.
    pub fn parse(text: &[u8]) -> Result<Self, Vec<String>> {
        if text.len() > LIMIT_BYTES {
            return Err(vec![format!("the file has more than {LIMIT_BYTES} bytes")]);
        }
        let mut wrong = WrongFields::new();
        let rules = read(text, &mut wrong);
        let (named, unnamed) = wrong.into_named();
        let mut mistakes: Vec<_> = named
            .iter()
            // Names that nobody knows are told as they came: let them be visible.
            .map(|wrong| format!("{}: {}", wrong.field.escape_debug(), wrong.detail))
            .collect();
        if unnamed > 0 {
            mistakes.push(format!("and {unnamed} more"));
        }
        match rules {
            Some(rules) if mistakes.is_empty() => Ok(Self(rules)),
            _ => Err(mistakes),
        }
    }

    /// Allows what a rule allows, and nothing else.
    #[must_use]
    pub fn decide(&self, question: &Question) -> Decision {
        let (About::Project(about) | About::Tenant(about)) = question.about();
        let allows = |rule: &Rule| {
            rule.permission == question.permission()
                && rule.member.is_met_by(question.member())
                && rule.about.is_met_by(about)
                && rule.site.is_met_by(question.site())
        };
        if self.0.iter().any(allows) { Decision::Allow } else { Decision::Deny }
    }
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        if text == ANY { Some(Self::Any) } else { Name::parse(text).ok().map(Self::Is) }
    }

    fn is_met_by(&self, name: &Name) -> bool {
        match self {
            Self::Any => true,
            Self::Is(only) => only == name,
        }
    }
}

fn read(text: &[u8], wrong: &mut WrongFields) -> Option<Vec<Rule>> {
    let mut file = object("the file", text, wrong)?;
    let expected = format!("{VERSION}");
    if let Some(version) = file.required::<u64>("version", wrong, &expected)
        && version != VERSION
    {
        wrong.push("version", format!("must be {expected}"));
    }
    let list = file.required_raw("rules", wrong);
    finish(&file, wrong);
    let list = match serde_json::from_str::<Vec<&RawValue>>(list?.get()) {
        Ok(list) => list,
        Err(_) => {
            wrong.push("rules", "must be a list");
            return None;
        }
    };
    let rules = list.iter().enumerate().map(|(index, raw)| {
        let (place, mut within) = (format!("rules[{index}]"), WrongFields::new());
        let fields = object(&place, raw.get().as_bytes(), wrong)?;
        let rule = rule(fields, &mut within);
        wrong.nest(&place, within);
        rule
    });
    // Every rule is read, also after one that is wrong.
    let rules: Vec<_> = rules.collect();
    rules.into_iter().collect()
}

fn rule(mut fields: JsonObject<'_>, wrong: &mut WrongFields) -> Option<Rule> {
    const NAME_RULE: &str = "must be *, or 1 to 255 visible ASCII characters without a space";
    let word: Option<String> = fields.required("permission", wrong, "a permission of Beto");
    let permission = word.and_then(|word| {
        let known = Permission::of(&word);
        wrong.check("permission", known.ok_or("must be a permission of Beto"))
    });
    let mut pattern = |name: &'static str, wrong: &mut WrongFields| {
        let text: String = fields.required(name, wrong, "a text")?;
        wrong.check(name, Pattern::parse(&text).ok_or(NAME_RULE))
    };
    let (member, site) = (pattern("member", wrong), pattern("site", wrong));
    // Without a permission nobody knows which of the two it needs.
    let about = permission.map(|permission| {
        let name = if permission.is_of_a_tenant() { "tenant" } else { "project" };
        pattern(name, wrong)
    });
    let unknown = |name: &&str| about.is_some() || !matches!(*name, "tenant" | "project");
    for name in fields.unknown().filter(unknown) {
        wrong.push(name, "does not belong here");
    }
    Some(Rule { permission: permission?, member: member?, about: about??, site: site? })
}

fn object<'a>(place: &str, text: &'a [u8], wrong: &mut WrongFields) -> Option<JsonObject<'a>> {
    let object = JsonObject::parse(text).map_err(|_| "must be a JSON object");
    wrong.check(place, object)
}

fn finish(fields: &JsonObject<'_>, wrong: &mut WrongFields) {
    for name in fields.unknown() {
        wrong.push(name, "does not belong here");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        Policy::parse(text.as_bytes()).unwrap_err()
    }

    fn question(text: &str) -> Question {
        Question::parse(text.as_bytes()).unwrap()
    }

    fn execute(member: &str, project: &str, site: &str) -> Question {
        question(&format!(
            r#"{{"version":1,"permission":"runs.execute","member":"{member}","project":"{project}","site":"{site}"}}"#
        ))
    }

    #[test]
    fn the_policy_of_the_page_allows_what_it_says_and_nothing_else() {
        let page = include_str!("../../../../docs/BETO.md");
        let blocks = page.split("```json\n").filter_map(|part| part.split("\n```").next());
        let text = blocks.into_iter().find(|block| block.contains("\"rules\"")).unwrap();
        let policy = Policy::parse(text.as_bytes()).unwrap();
        assert_eq!(policy.decide(&execute("m-17", "p-4", "gpu-lab")), Decision::Allow);
        for (member, project, site) in
            [("m-18", "p-4", "gpu-lab"), ("m-17", "p-5", "gpu-lab"), ("m-17", "p-4", "other")]
        {
            assert_eq!(policy.decide(&execute(member, project, site)), Decision::Deny);
        }
        // A name that looks like the sign for any name is one name more.
        assert_eq!(policy.decide(&execute("*", "p-4", "gpu-lab")), Decision::Deny);
        let view = r#"{"version":1,"permission":"runs.output.view","member":"who","project":"p-4","site":"x"}"#;
        assert_eq!(policy.decide(&question(view)), Decision::Allow);
        let write = view.replace("runs.output.view", "repositories.write");
        assert_eq!(policy.decide(&question(&write)), Decision::Deny);
        let manage = r#"{"version":1,"permission":"compute:sites:manage","member":"op-1","tenant":"root","site":"x"}"#;
        assert_eq!(policy.decide(&question(manage)), Decision::Allow);
        assert_eq!(policy.decide(&question(&manage.replace("root", "r"))), Decision::Deny);
        let nothing = Policy::parse(br#"{"version": 1, "rules": []}"#).unwrap();
        assert_eq!(nothing.decide(&execute("m-17", "p-4", "gpu-lab")), Decision::Deny);
    }

    #[test]
    fn every_mistake_is_named_with_its_place() {
        let told = mistakes(
            r#"{"version": 2, "more": 1, "rules": [
                {"permission": "runs.execute", "member": "m", "project": "p", "site": "s"},
                {"permission": "runs.execute", "member": "a b", "tenant": "t", "site": 7},
                {"permission": "runs.delete", "member": "m", "member": "*", "project": "p"},
                [],
                {"permission": "compute:sites:manage", "member": "", "tenant": "*", "site": "*", "project": "p"}
            ]}"#,
        );
        for expected in [
            "version: must be 1",
            "more: does not belong here",
            "rules[1].member: must be *",
            "rules[1].project: is missing",
            "rules[1].tenant: does not belong here",
            "rules[1].site: must be a text",
            "rules[2].permission: must be a permission of Beto",
            "rules[2].member: is there more than once",
            "rules[2].site: is missing",
            "rules[3]: must be a JSON object",
            "rules[4].member: must be *",
            "rules[4].project: does not belong here",
        ] {
            let named = told.iter().filter(|told| told.starts_with(expected)).count();
            assert_eq!(named, 1, "{expected}: {told:#?}");
        }
        assert_eq!(told.len(), 12, "{told:#?}");
    }

    #[test]
    fn what_is_no_policy_at_all_is_refused() {
        for text in ["", "[]", "null", "{", "{} {}", "\u{feff}{}"] {
            assert_eq!(mistakes(text), ["the file: must be a JSON object"], "{text:?}");
        }
        assert_eq!(mistakes("{}"), ["version: is missing", "rules: is missing"]);
        assert_eq!(mistakes(r#"{"version":1,"rules":{}}"#), ["rules: must be a list"]);
        let large = " ".repeat(LIMIT_BYTES + 1);
        assert!(mistakes(&large)[0].contains("more than"));
        // Some dozens are named, the rest is counted.
        let many = format!(r#"{{"version":1,"rules":[{}{{}}]}}"#, "{},".repeat(99));
        let told = mistakes(&many);
        assert!(told.len() < 50 && told.last().unwrap().ends_with(" more"), "{told:#?}");
    }
}
