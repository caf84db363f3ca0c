//! The rotations of a bearer and of a certificate as docs/OPERATIONS.md has them: the lines of the
//! page are run as they stand.

use std::{fs, path::Path, process::Command, time::Duration};

use callers::Grants;
use chrono::{DateTime, Utc};
use site_client::{
    CallError, Origin, PollRequest, SiteClient, TokenFile, Writer, roots_from_pem_file,
};
use test_support::{DatabaseUrls, TestDatabase, TestSite, bin};

/// The blocks of commands of a section, in order.
fn blocks(heading: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/OPERATIONS.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n### {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
    let parts = section.split("```sh\n").skip(1);
    parts.map(|part| part.split_once("```").unwrap().0.to_owned()).collect()
}

struct Rotation {
    site: TestSite,
    folder: tempfile::TempDir,
    _database: TestDatabase,
}

impl Rotation {
    async fn prepare() -> Self {
        let database = TestDatabase::create().await;
        let folder = tempfile::tempdir().unwrap();
        let urls = DatabaseUrls {
            api: database.url("site_coordination_api"),
            producer: database.url("site_coordination_producer"),
        };
        let site = TestSite::set_up(folder.path(), "gpu-lab", "slurm", urls).unwrap();
        Self { site, folder, _database: database }
    }

    /// Runs a block as a person does, who goes on only where a line ends with 0.
    fn run(&self, block: &str) -> String {
        let block = block.replace("8443", &self.site.listen.port().to_string());
        let programs = bin("site-admin").parent().unwrap().display().to_string();
        let mut shell = Command::new("sh");
        shell.args(["-euc", &block]).current_dir(self.folder.path());
        let output = shell.env("PATH", format!("{programs}:/usr/bin:/bin")).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{block}\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The code with which the Site API refuses a bearer; `None` where it does not.
    async fn refusal(&self, bearer: &Path) -> Option<String> {
        let roots = roots_from_pem_file(&self.site.file("tls/ca.crt")).unwrap();
        let token = TokenFile::open(bearer).await.unwrap();
        let origin = Origin::parse(&self.site.origin()).unwrap();
        let client = SiteClient::new(origin, roots, token, Default::default());
        let request = PollRequest {
            writer: Writer::FIRST,
            after: 0,
            after_digest: None,
            cancel_rev: 0,
            limit: 1,
            wait: Duration::ZERO,
        };
        match client.poll(&request).await {
            Ok(_) => None,
            Err(CallError::Problem(problem)) if problem.status == 401 => Some(problem.code),
            // The agent has a session, so that this poll of the first generation is stale.
            Err(CallError::Problem(problem)) if problem.status == 409 => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn active_grants(&self) -> usize {
        let text = fs::read_to_string(self.site.file("grants.json")).unwrap();
        let grants = Grants::parse(&text, now()).unwrap();
        grants.iter().filter(|grant| grant.is_active(now())).count()
    }

    /// Enqueues a command and waits until its handler has done it.
    fn works(&self, key: &str) {
        let stream = ["--site", "gpu-lab", "--environment", "slurm", "--key", key];
        let run = |words: &[&str], more: &[&str]| {
            self.site.admin(&[words, &stream, more].concat()).unwrap()
        };
        let body = self.folder.path().join("body").display().to_string();
        fs::write(&body, "{}").unwrap();
        run(&["commands", "enqueue"], &["--kind", "test", "--body", &body]);
        let ended = run(&["commands", "wait"], &["--within", "120"]);
        assert!(ended.contains("succeeded"), "{ended}");
    }
}

#[expect(clippy::disallowed_methods, reason = "grants.json was written by the clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

#[tokio::test]
async fn the_page_rotates_a_bearer_with_its_end_proven_before_the_next_begins() {
    let rotation = Rotation::prepare().await;
    let _api = rotation.site.start_site_api().await.unwrap();
    let handler = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/checksum-handler");
    let agent = rotation.site.start_agent(&handler).unwrap();
    rotation.works("before");
    let old = rotation.site.file("old");
    fs::copy(rotation.site.file("bearer"), &old).unwrap();
    assert_eq!(rotation.refusal(&old).await, None);

    let (mut admitted, mut revoked, mut proven, mut issued) = (false, false, false, false);
    for block in blocks("To rotate a bearer") {
        if block.contains("credentials issue") {
            assert!(proven, "the page issues before the end of the old bearer is proven");
            let refused = rotation.refusal(&old).await;
            assert_eq!(refused.as_deref(), Some("unauthenticated"));
            issued = true;
        }
        let printed = rotation.run(&block);
        if printed.contains(": revoked at ") {
            assert!(admitted, "a bearer that was never let in proves nothing by its end");
            revoked = true;
        }
        admitted |= printed.contains("\nadmitted: ");
        if block.contains("--expect refused") {
            assert_eq!(printed, "refused: 401 unauthenticated\n");
            assert!(revoked, "{printed}");
            let refused = rotation.refusal(&old).await;
            assert_eq!(refused.as_deref(), Some("unauthenticated"), "it is as the line says");
            proven = true;
        }
        assert!(rotation.active_grants() <= 1, "after {block}");
    }
    assert!(revoked && proven && issued);
    assert_eq!(rotation.active_grants(), 1);

    // The agent has gone on by itself, with the new bearer.
    rotation.works("after");
    assert_eq!(rotation.refusal(&old).await.as_deref(), Some("unauthenticated"));
    assert_eq!(rotation.refusal(&rotation.site.file("bearer")).await, None);
    assert_ne!(fs::read(&old).unwrap(), fs::read(rotation.site.file("bearer")).unwrap());
    drop(agent);
}

#[tokio::test]
async fn the_page_rotates_a_certificate_that_everybody_trusts_all_the_time() {
    let rotation = Rotation::prepare().await;
    let _api = rotation.site.start_site_api().await.unwrap();
    let file = |name: &str| rotation.site.file(name);
    let old = fs::read(file("tls/tls.crt")).unwrap();
    let old_ca = file("old-ca.crt");
    fs::copy(file("tls/ca.crt"), &old_ca).unwrap();
    let trusted = |ca: &Path| {
        let url = format!("https://localhost:{}", rotation.site.listen.port());
        let (ca, bearer) = (ca.display().to_string(), file("bearer").display().to_string());
        let probe = ["credentials", "probe", "--url", &url, "--ca-file", &ca, "--bearer", &bearer];
        rotation.site.admin(&probe).is_ok()
    };
    let mut proven = false;
    for block in blocks("To rotate the certificate") {
        let printed = rotation.run(&block);
        proven |= printed.starts_with("admitted: ");
        assert!(trusted(&file("tls/ca.crt")), "after {block}");
    }
    assert!(proven);
    assert_ne!(fs::read(file("tls/tls.crt")).unwrap(), old);
    let trust = fs::read_to_string(file("tls/ca.crt")).unwrap();
    assert_eq!(trust.matches("BEGIN CERTIFICATE").count(), 1, "the old CA is taken out");
    assert!(!trusted(&old_ca), "the old CA vouches for nothing any more");
}
