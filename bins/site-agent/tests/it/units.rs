//! The units for systemd.

use std::{fs, path::Path};

/// systemd itself reads each unit.
#[test]
fn the_units_are_what_systemd_understands() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/systemd");
    // The check looks for the program.
    let program = env!("CARGO_BIN_EXE_site-agent");
    let place = tempfile::tempdir().unwrap();
    for name in ["site-agent-runtime", "site-agent-ssh-keys"] {
        let unit = format!("{name}.service");
        let text = fs::read_to_string(folder.join(&unit)).unwrap();
        assert!(text.contains("/usr/local/bin/site-agent "));
        let path = place.path().join(&unit);
        let text = text.replace("/usr/local/bin/site-agent ", &format!("{program} "));
        fs::write(&path, text).unwrap();
        let mut verify = test_support::systemd_analyze().unwrap();
        let output = verify.arg("verify").arg("--man=no").arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let about_us: Vec<_> = said.lines().filter(|line| line.contains(name)).collect();
        assert!(about_us.is_empty(), "{said}");
    }
}
