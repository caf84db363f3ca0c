//! Path pattern → method → handler.
//!
//! Paths are matched as they were sent: nothing is percent-decoded, and `/a/` is another path than
//! `/a`. A pattern's `{name}` stands for one non-empty segment.

use std::{collections::BTreeMap, future::Future, pin::Pin, sync::Arc};

use http::{HeaderValue, Method};
use site_protocol::Code;

use crate::{
    call::{Call, PathParams, Response},
    problem::ProblemReply,
};

/// What a handler ends in.
pub type Answer = Result<Response, ProblemReply>;

type Handler = Arc<dyn Fn(Call) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// Routes in the making.
#[derive(Default)]
pub struct Routes(BTreeMap<&'static str, Path>);

/// The finished table.
pub struct Router(matchit::Router<(&'static str, Path)>);

/// Two routes that contradict each other.
#[derive(Debug, thiserror::Error)]
#[error("the route {pattern} contradicts another one")]
pub struct RouteError {
    /// The pattern of the later one.
    pub pattern: &'static str,
    source: Option<matchit::InsertError>,
}

#[derive(Default)]
struct Path {
    methods: Vec<(Method, Handler)>,
    probe: bool,
}

/// What the table says about a request.
pub(crate) struct Match {
    /// The pattern, for logs and metrics; `unmatched` where there is none.
    pub(crate) pattern: &'static str,
    /// A probe is answered under load as well, and logged at the level `debug`.
    pub(crate) probe: bool,
    /// The handler and what the path named, or the refusal.
    pub(crate) target: Result<(Handler, PathParams), ProblemReply>,
}

impl Routes {
    /// No routes yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler for a method on a pattern.
    #[must_use]
    pub fn route<F, Fut>(mut self, method: Method, pattern: &'static str, handler: F) -> Self
    where
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |call| Box::pin(handler(call)));
        self.0.entry(pattern).or_default().methods.push((method, handler));
        self
    }

    /// Adds a `GET` that is answered however many other requests there are: a probe that fails
    /// under load would have the process restarted for being busy.
    #[must_use]
    pub fn probe<F, Fut>(self, pattern: &'static str, handler: F) -> Self
    where
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let mut routes = self.route(Method::GET, pattern, handler);
        if let Some(path) = routes.0.get_mut(pattern) {
            path.probe = true;
        }
        routes
    }

    /// Finishes the table.
    ///
    /// # Errors
    ///
    /// When a method stands twice on a pattern, or two patterns contradict each other.
    pub fn build(self) -> Result<Router, RouteError> {
        let mut table = matchit::Router::new();
        for (pattern, path) in self.0 {
            let mut methods: Vec<_> = path.methods.iter().map(|(method, _)| method).collect();
            methods.sort_unstable_by_key(|method| method.as_str());
            methods.dedup();
            if methods.len() < path.methods.len() {
                return Err(RouteError { pattern, source: None });
            }
            table
                .insert(pattern, (pattern, path))
                .map_err(|source| RouteError { pattern, source: Some(source) })?;
        }
        Ok(Router(table))
    }
}

impl Router {
    pub(crate) fn find(&self, method: &Method, path: &str) -> Match {
        let Ok(found) = self.0.at(path) else {
            let problem = ProblemReply::new(Code::NotFound, "there is nothing at this path");
            return Match { pattern: "unmatched", probe: false, target: Err(problem) };
        };
        let (pattern, entry) = found.value;
        let target = match entry.methods.iter().find(|(known, _)| known == method) {
            Some((_, handler)) => Ok((Arc::clone(handler), found.params.iter().collect())),
            None => Err(entry.not_allowed()),
        };
        Match { pattern, probe: entry.probe, target }
    }
}

impl Path {
    fn not_allowed(&self) -> ProblemReply {
        let methods: Vec<_> = self.methods.iter().map(|(method, _)| method.as_str()).collect();
        let methods = methods.join(", ");
        let detail = format!("this path takes {methods}");
        let problem = ProblemReply::new(Code::MethodNotAllowed, detail);
        match HeaderValue::from_str(&methods) {
            Ok(allow) => problem.allow(allow),
            Err(error) => ProblemReply::internal(error),
        }
    }
}
