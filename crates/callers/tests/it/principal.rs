use callers::{Environment, NameError, Scope, SiteId};
use proptest::prelude::*;

use crate::support::{agent, runtime};

#[test]
fn a_site_is_named_by_letters_digits_dots_underscores_and_dashes() {
    for name in ["a", "0", "hpc-1", "HPC_1.example", &"x".repeat(64)] {
        assert_eq!(SiteId::parse(name).map(|site| site.to_string()).as_deref(), Ok(name));
    }
    for name in ["", ".a", "-a", "_a", "a b", "a/b", "a@b", "ä", "a\n", &"x".repeat(65)] {
        assert_eq!(SiteId::parse(name), Err(NameError::Site), "{name:?}");
    }
}

#[test]
fn environments_and_scopes_have_one_spelling() {
    assert_eq!(Environment::parse("k8s"), Ok(Environment::K8s));
    assert_eq!(Environment::parse("slurm"), Ok(Environment::Slurm));
    assert_eq!(Scope::parse("commands"), Ok(Scope::Commands));
    assert_eq!(Scope::parse("ssh-access"), Ok(Scope::SshAccess));
    for word in ["", "K8S", "Slurm", " slurm", "kubernetes"] {
        assert_eq!(Environment::parse(word), Err(NameError::Environment), "{word:?}");
    }
    for word in ["", "Commands", "ssh_access", "commands "] {
        assert_eq!(Scope::parse(word), Err(NameError::Scope), "{word:?}");
    }
}

#[test]
fn a_principal_is_written_as_its_scope_at_its_site() {
    assert_eq!(runtime("hpc-1").to_string(), "commands@hpc-1");
    assert_eq!(runtime("hpc-1").environment(), Some(Environment::Slurm));
    assert_eq!(agent("hpc-1").to_string(), "ssh-access@hpc-1");
    assert_eq!(agent("hpc-1").environment(), None);
}

proptest! {
    #[test]
    fn exactly_the_pattern_is_a_site(name in "[A-Za-z0-9][A-Za-z0-9._-]{0,63}") {
        prop_assert!(SiteId::parse(&name).is_ok());
    }

    #[test]
    fn a_foreign_character_anywhere_is_refused(
        before in "[A-Za-z0-9]{1,8}", foreign in "[^A-Za-z0-9._-]", after in "[A-Za-z0-9]{0,8}"
    ) {
        let name = format!("{before}{foreign}{after}");
        prop_assert!(SiteId::parse(&name).is_err());
    }
}
