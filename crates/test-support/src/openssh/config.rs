//! What the server is told: a snippet as it is shipped, and what a server for tests needs beside it.

/// Why a snippet can't be told who administers.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the snippet has no line `{0}` to be put into force")]
pub struct NoSuchLine(&'static str);

/// The lines by which a snippet has a place for administrators, and what the first one names.
const MATCH: &str = "#Match User root,admin";
const THEIRS: &str = "#    AuthorizedKeysFile .ssh/authorized_keys";
const ALL: &str = "#Match all";

/// The snippet as who administers puts it into force: the lines for that with their names, all others as
/// they are.
pub(super) fn with_administrators(
    snippet: &str,
    administrators: &[String],
) -> Result<String, NoSuchLine> {
    if administrators.is_empty() {
        return Ok(snippet.to_owned());
    }
    let named = format!("Match User {}", administrators.join(","));
    let mut text = snippet.to_owned();
    for (line, forced) in [(MATCH, named.as_str()), (THEIRS, &THEIRS[1..]), (ALL, &ALL[1..])] {
        if !snippet.lines().any(|there| there == line) {
            return Err(NoSuchLine(line));
        }
        text = text.replace(&format!("{line}\n"), &format!("{forced}\n"));
    }
    Ok(text)
}

/// The rest of the configuration. The first word on a setting counts, so the snippet comes first.
pub(super) fn around_the_snippet(port: u16) -> String {
    format!(
        "Include /etc/ssh/sshd_config.d/*.conf\n\
         Port {port}\n\
         ListenAddress 127.0.0.1\n\
         HostKey /etc/ssh/host_key\n\
         PidFile none\n\
         LogLevel VERBOSE\n\
         UsePAM no\n\
         UseDNS no\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         MaxStartups 500\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNIPPET: &str = "AuthorizedKeysFile /etc/ssh/site-agent/%u\n\
                           # Name them:\n\
                           #Match User root,admin\n\
                           #    AuthorizedKeysFile .ssh/authorized_keys\n\
                           #Match all\n";

    #[test]
    fn the_lines_for_administrators_are_put_into_force_and_no_other() {
        let named = with_administrators(SNIPPET, &["ada".to_owned(), "bob".to_owned()]).unwrap();
        assert_eq!(
            named,
            "AuthorizedKeysFile /etc/ssh/site-agent/%u\n\
             # Name them:\n\
             Match User ada,bob\n    \
                 AuthorizedKeysFile .ssh/authorized_keys\n\
             Match all\n"
        );
        assert_eq!(with_administrators(SNIPPET, &[]).unwrap(), SNIPPET);
    }

    #[test]
    fn a_snippet_without_these_lines_is_refused() {
        let other = SNIPPET.replace("#Match all", "# Match all");
        let refused = with_administrators(&other, &["ada".to_owned()]).unwrap_err();
        assert_eq!(refused, NoSuchLine("#Match all"));
    }
}
