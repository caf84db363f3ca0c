//! The codes with which the agent ends, for a supervisor and its operator.

use std::process::ExitCode;

/// Why the agent ended.
///
/// | Code | Means | Start it again? |
/// |---|---|---|
/// | 0 | stopped by SIGTERM or SIGINT | when wanted |
/// | 64 | an argument, a setting or a file that it names is wrong, or the journal or the state is of another Site API; each mistake is in the log | after the correction |
/// | 65 | a command is another one than the journal knows, another result is stored, or an answer contradicts itself: going on could do harm | after somebody has looked |
/// | 70 | the journal is damaged, a folder can't be used, or an error of the agent itself | after somebody has looked |
/// | 73 | another agent uses the state folder, or the folder of keys | no |
/// | 76 | another Runtime took the stream over | no: it would take it back, and so on |
/// | 143 | a second signal: stopped without tidying up | when wanted |
///
/// A refused credential (401, 403) is no reason to end: tokens are rotated and grants repaired
/// while the agent runs, so it logs an alarm and tries again, at most every ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0.
    Stopped,
    /// 64.
    Settings,
    /// 65.
    Stream,
    /// 70.
    Internal,
    /// 73.
    StateInUse,
    /// 76.
    TakenOver,
    /// 143.
    Hurried,
}

impl Exit {
    /// The number that a supervisor sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Stopped => 0,
            Self::Settings => 64,
            Self::Stream => 65,
            Self::Internal => 70,
            Self::StateInUse => 73,
            Self::TakenOver => 76,
            Self::Hurried => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNTIME: &str = include_str!("../../../deploy/systemd/site-agent-runtime.service");
    const SSH_KEYS: &str = include_str!("../../../deploy/systemd/site-agent-ssh-keys.service");

    const ALL: [Exit; 7] = [
        Exit::Stopped,
        Exit::Settings,
        Exit::Stream,
        Exit::Internal,
        Exit::StateInUse,
        Exit::TakenOver,
        Exit::Hurried,
    ];

    /// The codes that a unit lists under a name; each name stands there once.
    fn codes(unit: &str, name: &str) -> Vec<u8> {
        let values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        let [value] = values.collect::<Vec<_>>()[..] else { panic!("{name} is not there once") };
        value.split(' ').map(|code| code.parse().unwrap()).collect()
    }

    #[test]
    fn the_unit_starts_again_what_a_start_can_mend_and_nothing_else() {
        assert!(RUNTIME.lines().any(|line| line == "Restart=on-failure"));
        let prevented = codes(RUNTIME, "RestartPreventExitStatus");
        let good = codes(RUNTIME, "SuccessExitStatus");
        for exit in ALL {
            let (is_prevented, is_good) = match exit {
                // Zero is good by itself.
                Exit::Stopped => (false, false),
                Exit::Hurried => (false, true),
                Exit::Settings | Exit::Stream | Exit::TakenOver => (true, false),
                Exit::Internal | Exit::StateInUse => (false, false),
            };
            let code = exit.code();
            assert_eq!((prevented.contains(&code), good.contains(&code)), (is_prevented, is_good));
        }
        let known = |code: &u8| ALL.iter().any(|exit| exit.code() == *code);
        assert!(prevented.iter().chain(&good).all(known), "the unit names a code that is none");
    }

    /// An SSH agent never ends with 65 or 76: nothing that the Site API says ends it.
    #[test]
    fn the_unit_of_ssh_keys_starts_again_what_is_no_wrong_setting() {
        assert!(SSH_KEYS.lines().any(|line| line == "Restart=on-failure"));
        assert_eq!(codes(SSH_KEYS, "RestartPreventExitStatus"), [Exit::Settings.code()]);
        assert_eq!(codes(SSH_KEYS, "SuccessExitStatus"), [Exit::Hurried.code()]);
    }
}
