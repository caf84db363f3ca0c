//! `site-admin credentials probe`: what a running Site API says to a bearer.

use serde_json::Value;
use test_support::{DatabaseUrls, TestDatabase, TestSite, free_port};

use crate::support::{Admin, Done, admin};

struct Probed {
    site: TestSite,
    _folder: tempfile::TempDir,
    _database: TestDatabase,
}

impl Probed {
    async fn create() -> Self {
        let database = TestDatabase::create().await;
        let folder = tempfile::tempdir().unwrap();
        let urls = DatabaseUrls {
            api: database.url("site_coordination_api"),
            producer: database.url("site_coordination_producer"),
        };
        let site = TestSite::set_up(folder.path(), "north-1", "slurm", urls).unwrap();
        Self { site, _folder: folder, _database: database }
    }

    fn probe(&self, bearer: &str, more: &[&str]) -> Done {
        self.probe_at(&self.site.origin(), bearer, more)
    }

    fn probe_at(&self, url: &str, bearer: &str, more: &[&str]) -> Done {
        self.asking(url, bearer, more).run()
    }

    fn asking(&self, url: &str, bearer: &str, more: &[&str]) -> Admin {
        let file = |name: &str| self.site.file(name).display().to_string();
        let (ca, bearer) = (file("tls/ca.crt"), file(bearer));
        let probe = ["credentials", "probe", "--url", url, "--ca-file", &ca, "--bearer", &bearer];
        admin(&[&probe, more].concat())
    }
}

#[tokio::test]
async fn it_tells_a_bearer_that_is_let_in_from_one_that_is_refused() {
    let probed = Probed::create().await;
    probed.site.issue_bearer("ssh-access", "agent").unwrap();
    let stranger = format!("scnb_{}.{}\n", "0".repeat(16), "0".repeat(32));
    std::fs::write(probed.site.file("stranger"), &stranger).unwrap();
    let _api = probed.site.start_site_api().await.unwrap();

    assert!(probed.probe("bearer", &[]).ok().starts_with("admitted: 422 "));
    // Let in, and not for commands.
    assert!(probed.probe("agent", &[]).ok().starts_with("admitted: 403 "));
    assert_eq!(
        probed.probe("stranger", &["--expect", "refused"]).ok(),
        "refused: 401 unauthenticated\n"
    );

    let done = probed.probe("stranger", &[]);
    assert_eq!((done.code, done.out.as_str()), (77, "refused: 401 unauthenticated\n"), "{done:?}");
    let done = probed.probe("bearer", &["--expect", "refused", "--within", "1", "--json"]);
    assert_eq!(done.code, 77, "{done:?}");
    let answer: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&answer["answer"], &answer["status"]), (&"admitted".into(), &422.into()));
    assert!(!format!("{done:?}").contains(&probed.site.bearer().unwrap()));
}

#[tokio::test]
async fn what_is_no_site_api_proves_nothing() {
    let probed = Probed::create().await;
    let nobody = format!("https://127.0.0.1:{}", free_port().unwrap());
    probed.probe_at(&nobody, "bearer", &["--expect", "refused"]).refused(69, "no complete answer");
    probed.probe("none", &[]).refused(66, "none");
    probed.probe_at("http://127.0.0.1", "bearer", &[]).refused(64, "--url");
}

#[tokio::test]
async fn it_asks_again_until_the_site_api_is_there() {
    let probed = Probed::create().await;
    let asking = probed.asking(&probed.site.origin(), "bearer", &["--within", "60"]);
    let asking = std::thread::spawn(move || asking.run());
    let _api = probed.site.start_site_api().await.unwrap();
    assert!(asking.join().unwrap().ok().starts_with("admitted: "));
}
