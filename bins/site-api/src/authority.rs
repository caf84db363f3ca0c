//! Execution authority: what is accepted of Runs, who has an account at the Site, and whom to ask
//! about permissions. Each context is read with a credential of its own.
//!
//! Nothing is decided here and nothing is kept: the rule is `execution_core::authority`, and an answer
//! is that to one question.

mod settings;
mod watch;

use beto::{Beto, Caller, CouldNotAsk, Decision, Name, Permission};
use database::{Pool, PoolLimits};
use execution_core::{
    Belonging, Environment, Invalid, MemberId, Place, ProjectId, RunId, Runs, SiteId,
    authority::{Binding, Question},
};
use resource_provisioning::Bindings;
use ring::rand::SystemRandom;
use service_kit::ProblemReply;

use crate::{problems, start::Clock, state::State};
use watch::CallerHealth;

pub(crate) use settings::{AuthoritySettings, BINDINGS_DATABASE, RUNS_DATABASE, read};
pub(crate) use watch::{close_idle, watch};

/// Connections to each of the two contexts at the most, opened when they are needed.
const CONNECTIONS: usize = 2;

/// The contexts that are read, and the callers of Beto. One connection to the broker for each of
/// them is made in the background.
pub(crate) struct Authority {
    runs: Runs,
    bindings: Bindings,
    site: SiteNames,
    execute: Beto,
    views: Option<Beto>,
    pools: [Pool; 2],
}

/// The Site of the listener, as each side calls it; see docs/decisions/0014-context-types-are-its-own.md.
struct SiteNames {
    runs: SiteId,
    bindings: resource_provisioning::SiteId,
    beto: Name,
}

/// Why it is not known whether a member has a permission.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAsked {
    /// Nobody could be asked, or what was answered is no answer.
    #[error("{caller} could not ask Beto")]
    CouldNotAsk {
        /// Who asked.
        caller: Caller,
        /// Why.
        source: CouldNotAsk,
    },
    /// A name or a permission is none that can be asked about: a fault of ours.
    #[error("the question can't be asked: it has {0}")]
    NoQuestion(&'static str),
}

impl SiteNames {
    fn of(site: &site_coordination::SiteId) -> Option<Self> {
        let site = site.as_str();
        Some(Self {
            runs: SiteId::parse(site).ok()?,
            bindings: resource_provisioning::SiteId::parse(site).ok()?,
            beto: Name::parse(site).ok()?,
        })
    }
}

impl Authority {
    /// Begins to connect to the broker, in tasks of the current runtime; `None` where the Site is none
    /// of the other contexts. A broker that is away is an alarm, later.
    pub(crate) fn open(
        settings: AuthoritySettings,
        site: &site_coordination::SiteId,
        random: &SystemRandom,
        clock: Clock,
    ) -> Option<Self> {
        let limits = PoolLimits { connections: CONNECTIONS, ..PoolLimits::default() };
        let pool = |url| Pool::new(url, "site-api", limits);
        let (runs, bindings) = (pool(&settings.runs), pool(&settings.bindings));
        let start = |setup| Beto::start(setup, random.clone(), clock);
        Some(Self {
            site: SiteNames::of(site)?,
            runs: Runs::new(runs.clone()),
            bindings: Bindings::new(bindings.clone()),
            execute: start(settings.execute),
            views: settings.views.map(start),
            pools: [runs, bindings],
        })
    }

    /// The pools of the two contexts.
    pub(crate) fn pools(&self) -> [Pool; 2] {
        self.pools.clone()
    }

    /// How it is with asking, for each caller.
    pub(crate) fn health(&self) -> Vec<CallerHealth> {
        let execute = (Caller::ResourceProvisioning, &self.execute);
        let views = self.views.as_ref().map(|views| (Caller::SiteCoordination, views));
        let health = |(caller, beto): (_, &Beto)| CallerHealth { caller, health: beto.health() };
        [execute].into_iter().chain(views).map(health).collect()
    }

    /// Where a caller of an environment is.
    pub(crate) fn place(&self, environment: site_coordination::Environment) -> Place {
        let environment = match environment {
            site_coordination::Environment::K8s => Environment::K8s,
            site_coordination::Environment::Slurm => Environment::Slurm,
        };
        Place { site: self.site.runs.clone(), environment }
    }

    /// A Run of a place as it is now.
    pub(crate) async fn run(
        &self,
        state: &State,
        place: &Place,
        run: &RunId,
    ) -> Result<Option<execution_core::ReadRun>, ProblemReply> {
        self.runs.run(place, run).await.map_err(|error| problems::runs(state, error))
    }

    /// The binding of a member that is retained now, in the words of who decides.
    pub(crate) async fn binding(
        &self,
        state: &State,
        member: &MemberId,
    ) -> Result<Option<Binding>, ProblemReply> {
        let asked = resource_provisioning::MemberId::parse(member.as_str());
        let asked = asked.map_err(ProblemReply::internal)?;
        let found = self.bindings.retained(&self.site.bindings, &asked).await;
        let found = found.map_err(|error| problems::bindings(state, error))?;
        // What was read, and not what was asked for: the rule compares the two.
        let binding = |found: resource_provisioning::Binding| -> Result<_, Invalid> {
            Ok(Binding {
                site: SiteId::parse(found.retained.site.as_str())?,
                member: MemberId::parse(found.retained.member.as_str())?,
                released_at: found.released_at,
            })
        };
        found.map(binding).transpose().map_err(ProblemReply::internal)
    }

    /// What a Run of the Site belongs to.
    pub(crate) async fn belonging(
        &self,
        state: &State,
        run: &RunId,
    ) -> Result<Option<Belonging>, ProblemReply> {
        let found = self.runs.belonging(&self.site.runs, run).await;
        found.map_err(|error| problems::runs(state, error))
    }

    /// Who asks whether a member may see a private output, where there is anybody.
    pub(crate) fn views(&self) -> Option<&Beto> {
        self.views.as_ref()
    }

    /// Asks Beto, once, now, whether a member may see the private outputs of a Project. Where there is
    /// no Run it is asked about a Project that is none.
    pub(crate) async fn ask_to_view(
        &self,
        views: &Beto,
        member: &str,
        belonging: Option<&Belonging>,
    ) -> Result<Decision, NotAsked> {
        let project =
            belonging.map_or(ProjectId::OF_NO_RUN, |belonging| belonging.project.as_str());
        let caller = Caller::SiteCoordination;
        self.ask_as(caller, views, Permission::RunsOutputView, member, project).await
    }

    /// Asks Beto, once, now, what is left to be asked.
    pub(crate) async fn ask(&self, question: &Question) -> Result<Decision, NotAsked> {
        let permission = Permission::of(question.permission());
        let permission = permission.ok_or(NotAsked::NoQuestion("a permission that is none"))?;
        let caller = Caller::ResourceProvisioning;
        self.ask_as(
            caller,
            &self.execute,
            permission,
            question.member().as_str(),
            question.project().as_str(),
        )
        .await
    }

    async fn ask_as(
        &self,
        caller: Caller,
        beto: &Beto,
        permission: Permission,
        member: &str,
        project: &str,
    ) -> Result<Decision, NotAsked> {
        let name = |text, what| Name::parse(text).map_err(|_| NotAsked::NoQuestion(what));
        let member = name(member, "a member who has no name")?;
        let project = name(project, "a project that has no name")?;
        let site = self.site.beto.clone();
        let question = beto::Question::in_project(permission, member, project, site);
        let question = question.ok_or(NotAsked::NoQuestion("a permission without a project"))?;
        let asked = beto.ask(&question).await;
        let outcome = match &asked {
            Ok(Decision::Allow) => "allowed",
            Ok(Decision::Deny) => "denied",
            Err(_) => "not_asked",
        };
        metrics::counter!("beto_questions_total", "caller" => caller.user(), "outcome" => outcome)
            .increment(1);
        asked.map_err(|source| NotAsked::CouldNotAsk { caller, source })
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Four crates have a Site of their own; see docs/decisions/0014-context-types-are-its-own.md.
    #[test]
    fn every_side_agrees_on_what_a_site_is() {
        let (long, too_long) = ("a".repeat(64), "a".repeat(65));
        let mut texts = vec!["", "gpu-lab", "A.b_c-9", "é", "a b", "a/b", "a\n", &long, &too_long];
        let ascii: Vec<String> = (0..=127u8).map(char::from).map(String::from).collect();
        let second: Vec<String> = ascii.iter().map(|one| format!("a{one}")).collect();
        texts.extend(ascii.iter().chain(&second).map(String::as_str));
        for text in texts {
            let served = site_coordination::SiteId::parse(text);
            let known = served.is_ok();
            assert_eq!(SiteId::parse(text).is_ok(), known, "{text:?}");
            assert_eq!(resource_provisioning::SiteId::parse(text).is_ok(), known, "{text:?}");
            assert_eq!(served.is_ok_and(|site| SiteNames::of(&site).is_some()), known, "{text:?}");
        }
    }

    #[test]
    fn both_contexts_and_beto_agree_on_who_a_member_is() {
        let (long, too_long) = ("m".repeat(255), "m".repeat(256));
        let ascii: Vec<String> = (0..=127u8).map(char::from).map(|one| format!("m{one}")).collect();
        let texts = ["", "m-17", "é", &long, &too_long].into_iter();
        for text in texts.chain(ascii.iter().map(String::as_str)) {
            let known = MemberId::parse(text).is_ok();
            assert_eq!(resource_provisioning::MemberId::parse(text).is_ok(), known, "{text:?}");
            assert_eq!(Name::parse(text).is_ok(), known, "{text:?}");
        }
    }

    #[test]
    fn every_project_has_a_name_and_every_permission_of_an_action_is_one() {
        let long = "p".repeat(128);
        let ascii = (0..=127u8).map(char::from).map(|one| format!("p{one}"));
        for text in ascii.chain([long]) {
            assert!(ProjectId::parse(&text).is_err() || Name::parse(&text).is_ok(), "{text:?}");
        }
        for action in execution_core::Action::ALL {
            let permission = Permission::of(action.permission());
            assert!(permission.is_some_and(|one| !one.is_of_a_tenant()), "{action:?}");
        }
    }
}
