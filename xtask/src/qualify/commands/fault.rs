//! The kinds of faults.

use std::time::Duration;

/// What is done to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    AgentKill,
    AgentPause,
    ListenerKill,
    ListenerPause,
    BackendKill,
    BackendTerminate,
    BackendPause,
    PostgresKill,
    PostgresPause,
    ProxyDelay,
    ProxyCut,
    ProxyCutAnswer,
    ProxyBlackHole,
    ProxyRefuse,
    ProxyHtml,
    ClockAhead,
    ClockBehind,
    PostgresClock,
    Backup,
    Restore,
}

impl Kind {
    pub(crate) const ALL: [Self; 20] = [
        Self::AgentKill,
        Self::AgentPause,
        Self::ListenerKill,
        Self::ListenerPause,
        Self::BackendKill,
        Self::BackendTerminate,
        Self::BackendPause,
        Self::PostgresKill,
        Self::PostgresPause,
        Self::ProxyDelay,
        Self::ProxyCut,
        Self::ProxyCutAnswer,
        Self::ProxyBlackHole,
        Self::ProxyRefuse,
        Self::ProxyHtml,
        Self::ClockAhead,
        Self::ClockBehind,
        Self::PostgresClock,
        Self::Backup,
        Self::Restore,
    ];

    /// As the report names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AgentKill => "agent SIGKILL",
            Self::AgentPause => "agent SIGSTOP",
            Self::ListenerKill => "listener SIGKILL",
            Self::ListenerPause => "listener SIGSTOP",
            Self::BackendKill => "backend SIGKILL",
            Self::BackendTerminate => "backend terminated",
            Self::BackendPause => "backend SIGSTOP",
            Self::PostgresKill => "PostgreSQL SIGKILL",
            Self::PostgresPause => "PostgreSQL SIGSTOP",
            Self::ProxyDelay => "network delay",
            Self::ProxyCut => "connections cut",
            Self::ProxyCutAnswer => "answer cut",
            Self::ProxyBlackHole => "black hole",
            Self::ProxyRefuse => "connections refused",
            Self::ProxyHtml => "HTML 503",
            Self::ClockAhead => "clock an hour ahead",
            Self::ClockBehind => "clock an hour behind",
            Self::PostgresClock => "PostgreSQL's clock an hour off",
            Self::Backup => "backup, server stopped",
            Self::Restore => "older database restored",
        }
    }

    /// How often it is in a deck. What every recovery takes down with it is rarer.
    pub(super) fn in_a_deck(self) -> usize {
        match self {
            Self::AgentKill | Self::ListenerKill => 3,
            Self::AgentPause | Self::BackendTerminate | Self::ProxyCut | Self::ProxyCutAnswer => 2,
            _ => 1,
        }
    }

    pub(super) fn shortest(self) -> Duration {
        Duration::from_millis(match self {
            Self::ClockAhead | Self::ClockBehind | Self::PostgresClock => 3_000,
            _ => 200,
        })
    }

    /// Long enough to run into the callers' timeouts now and then, short enough for half a minute.
    pub(super) fn longest(self) -> Duration {
        Duration::from_millis(match self {
            Self::PostgresPause => 2_000,
            Self::ClockAhead | Self::ClockBehind | Self::PostgresClock => 8_000,
            Self::AgentPause | Self::ListenerPause | Self::BackendPause => 4_000,
            _ => 3_000,
        })
    }
}
