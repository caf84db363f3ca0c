//! Unix users that nobody knows but one server: files as in `/etc`, which it alone sees there.

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
};

/// Where the ids of such users begin. Those of a machine are made from 1000 on upwards and from 60000
/// on by Debian itself.
const FIRST_ID: u32 = 58_000;

/// Writes `passwd`, `shadow`, `group` and `nsswitch.conf` into `etc`, and makes a home for each user in
/// `home`, where they see it too.
pub(super) fn make(etc: &Path, home: &Path, users: &[String]) -> io::Result<()> {
    let taken = fs::read_to_string("/etc/passwd")?;
    let ids = (FIRST_ID..).filter(|id| !is_taken(&taken, *id));
    // The second is whom the server's part without rights runs as.
    let mut passwd = "root:x:0:0:root:/root:/bin/sh\n\
                      sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        .to_owned();
    let mut shadow = "root:*:19000::::::\nsshd:*:19000::::::\nnobody:*:19000::::::\n".to_owned();
    let mut group = "root:x:0:\nnogroup:x:65534:\n".to_owned();
    fs::create_dir_all(etc)?;
    for (user, id) in users.iter().zip(ids) {
        let home = home.join(user);
        passwd += &format!("{user}:x:{id}:{id}::{}:/bin/sh\n", home.display());
        // No password, and not locked: a locked account is refused whatever its key.
        shadow += &format!("{user}:*:19000::::::\n");
        group += &format!("{user}:x:{id}:\n");
        fs::create_dir_all(&home)?;
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700))?;
        chown(&home, Some(id), Some(id))?;
    }
    fs::write(etc.join("passwd"), passwd)?;
    fs::write(etc.join("shadow"), shadow)?;
    fs::set_permissions(etc.join("shadow"), fs::Permissions::from_mode(0o600))?;
    fs::write(etc.join("group"), group)?;
    // Nobody from a directory of the machine's network.
    fs::write(
        etc.join("nsswitch.conf"),
        "passwd: files\nshadow: files\ngroup: files\nhosts: files\n",
    )
}

/// Whether a user of the machine has an id.
fn is_taken(passwd: &str, id: u32) -> bool {
    let id = id.to_string();
    passwd.lines().any(|line| line.split(':').nth(2) == Some(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_the_machine_is_taken() {
        let passwd = "root:x:0:0::/root:/bin/sh\none:x:58000:100::/home/one:/bin/sh\n";
        assert!(is_taken(passwd, 58_000));
        assert!(!is_taken(passwd, 100) && !is_taken(passwd, 5_800));
    }
}
