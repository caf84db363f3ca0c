//! What stands around a Site whose Runs are executed with authority: a database with all contexts, a
//! broker with Beto's callers, a responder that decides by a policy file, the issuer of members'
//! tokens, and a cluster whose accounts are admitted. All of it is real but the cluster's API server.

pub(crate) mod calls;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use test_support::{
    API_AUDIENCE, AccessRequest, DatabaseUrls, KubeApi, MemberTokens, OidcProvider, Process,
    TestCa, TestSite, TokenRequest, bin,
    postgres::{Cluster, migrated_database},
    process::LastSignal,
    rabbitmq::Broker,
};

pub(crate) const DATABASE: &str = "site_control";
pub(crate) const SITE: &str = "gpu-lab";
pub(crate) const ENVIRONMENT: &str = "slurm";
/// Ours, in the tokens of members.
pub(crate) const AUDIENCE: &str = "https://api.site-control.example";
/// What a Runtime's token for an action is for.
pub(crate) const OTHER_AUDIENCE: &str = "https://storage.example";

/// The time for a question to Beto, in seconds.
pub(crate) const BETO_SECONDS: u64 = 1;

const NAMESPACE: &str = "admission";
const POD: &str = "admission-0";
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Everything that runs; all of it ends with the value.
pub(crate) struct Surroundings {
    pub(crate) site: TestSite,
    pub(crate) site_api: Process,
    pub(crate) responder: Process,
    pub(crate) outside: Outside,
    folder: PathBuf,
}

/// The parties whom `site-api` calls.
pub(crate) struct Outside {
    pub(crate) cluster: Cluster,
    pub(crate) broker: Broker,
    issuer: OidcProvider,
    kube: KubeApi,
}

impl Surroundings {
    /// Sets everything up in a folder, around a cluster without a database, with nothing allowed yet.
    pub(crate) async fn set_up(
        folder: &Path,
        mut cluster: Cluster,
    ) -> Result<Self, Box<dyn Error>> {
        migrated_database(&mut cluster, DATABASE, &bin("site-admin")).await?;
        let url = |role: &str| cluster.access().role_url(role, DATABASE);
        let urls = DatabaseUrls {
            api: url("site_coordination_api"),
            producer: url("site_coordination_producer"),
        };
        let site = TestSite::set_up(&folder.join("site"), SITE, ENVIRONMENT, urls)?;
        let broker = broker(&site, &folder.join("broker")).await?;
        let ca = TestCa::new();
        fs::write(folder.join("ca.pem"), ca.cert_pem())?;
        let kube = KubeApi::start(&ca).await;
        for account in ["site-api", "admission"] {
            kube.create_account(NAMESPACE, account);
        }
        kube.create_pod(NAMESPACE, POD);
        kube.allow_reviews(NAMESPACE, "site-api");
        let reviewer = TokenRequest::new(NAMESPACE, "site-api", &[API_AUDIENCE]);
        fs::write(folder.join("reviewer-token"), kube.issue(reviewer.life(LONG)))?;
        let issuer = OidcProvider::start(&ca).await?;
        write_policy(folder, &[])?;
        let responder = start_responder(folder, &broker)?;
        let outside = Outside { broker, issuer, kube, cluster };
        let site_api = start_site_api(outside.settings(site.site_api_command(), folder)).await?;
        let folder = folder.to_owned();
        let all = Self { site, site_api, responder, outside, folder };
        all.responder_answers().await?;
        Ok(all)
    }

    /// Starts `site-api` again where it ended, with the same settings.
    pub(crate) async fn restart_site_api(&mut self) -> Result<(), Box<dyn Error>> {
        let command = self.outside.settings(self.site.site_api_command(), &self.folder);
        self.site_api = start_site_api(command).await?;
        Ok(())
    }

    /// Starts the responder again where it ended, and waits until it answers.
    pub(crate) async fn restart_responder(&mut self) -> Result<(), Box<dyn Error>> {
        self.responder = start_responder(&self.folder, &self.outside.broker)?;
        self.responder_answers().await
    }

    async fn responder_answers(&self) -> Result<(), Box<dyn Error>> {
        let answers = |line: &str| line.contains("answers questions now");
        self.responder.wait_for_line("that it answers", READY_WITHIN, answers).await?;
        Ok(())
    }

    /// Has the responder allow these and nothing else, from its next question on.
    pub(crate) fn allow(&self, rules: &[Value]) -> Result<(), Box<dyn Error>> {
        write_policy(&self.folder, rules)
    }

    /// Runs `site-admin` with the settings of the control plane, and returns what it printed.
    pub(crate) fn admin(&self, arguments: &[&str]) -> Result<Value, Box<dyn Error>> {
        let url = |role| self.outside.role_url(role);
        let mut command = self.site.admin_command();
        command
            .env("EXECUTION_CORE_WRITER_DATABASE_URL", url("execution_core_writer"))
            .env("RESOURCE_PROVISIONING_WRITER_DATABASE_URL", url("resource_provisioning_writer"))
            .args(arguments)
            .arg("--json");
        let output = command.output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`site-admin {}`: {said}", arguments.join(" ")).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Accepts a Run of a member, with one Attempt submitted.
    pub(crate) fn accept(&self, run: &str, member: &str) -> Result<(), Box<dyn Error>> {
        let document = self.folder.join(format!("{run}.json"));
        let text = json!({
            "runId": run, "projectId": PROJECT, "memberId": member, "site": SITE,
            "environment": ENVIRONMENT, "deadline": "2999-01-01T00:00:00Z",
            "repository": {
                "instance": "gitlab", "projectId": 4711, "path": "research/climate",
                "ref": "main", "commit": "0123456789abcdef0123456789abcdef01234567",
            },
            "material": { "image": "train:3", "nodes": 2 },
        });
        fs::write(&document, text.to_string())?;
        self.admin(&["runs", "accept", &document.display().to_string()])?;
        self.submit(run, 1)
    }

    /// Submits an Attempt.
    pub(crate) fn submit(&self, run: &str, attempt: u32) -> Result<(), Box<dyn Error>> {
        self.admin(&["runs", "submit", run, "--attempt", &attempt.to_string()])?;
        Ok(())
    }

    /// Enqueues a command of a Run, and returns its id.
    pub(crate) fn enqueue(&self, run: &str, body: &Value) -> Result<String, Box<dyn Error>> {
        let file = self.folder.join("body.json");
        fs::write(&file, body.to_string())?;
        let (key, file) = (format!("submit-{run}"), file.display().to_string());
        let enqueued = self.admin(&[
            "commands",
            "enqueue",
            "--site",
            SITE,
            "--environment",
            ENVIRONMENT,
            "--key",
            &key,
            "--kind",
            "job.submit",
            "--run-id",
            run,
            "--body",
            &file,
        ])?;
        Ok(enqueued["commandId"].as_str().ok_or("a command without an id")?.to_owned())
    }

    /// Retains a binding of a member, and returns its id.
    pub(crate) fn retain(&self, member: &str, uid: u32) -> Result<String, Box<dyn Error>> {
        let (user, uid) = (format!("u{uid}"), uid.to_string());
        let retained = self.admin(&[
            "bindings",
            "retain",
            "--site",
            SITE,
            "--member",
            member,
            "--unix-user",
            &user,
            "--uid",
            &uid,
            "--gid",
            "1000",
            "--account",
            "climate",
        ])?;
        Ok(retained["bindingId"].as_i64().ok_or("a binding without an id")?.to_string())
    }

    /// Releases a binding.
    pub(crate) fn release(&self, binding: &str) -> Result<(), Box<dyn Error>> {
        self.admin(&["bindings", "release", binding])?;
        Ok(())
    }

    /// A token of the account that admits Runs.
    pub(crate) fn admission_token(&self) -> String {
        let request = TokenRequest::new(NAMESPACE, "admission", &["site-control"]);
        self.outside.kube.issue(request.pod(POD).life(LONG))
    }

    /// A token of a member for an audience, and the ID token that came with it.
    pub(crate) async fn member_tokens(&self, member: &str, audience: &str) -> MemberTokens {
        let audiences = [audience];
        self.outside.issuer.member(member, AccessRequest::new(&audiences).life(TOKEN_SECONDS)).await
    }
}

impl Outside {
    fn role_url(&self, role: &str) -> String {
        self.cluster.access().role_url(role, DATABASE)
    }

    /// `site-api`, told about each of them.
    fn settings(&self, mut command: Command, folder: &Path) -> Command {
        let admission = format!("system:serviceaccount:{NAMESPACE}:admission");
        let url = |user: &str| folder.join(format!("broker/{user}.url"));
        command
            .env("SITE_API_EXECUTION_AUTHORITY_ENABLED", "true")
            .env("EXECUTION_CORE_DATABASE_URL", self.role_url("execution_core_api"))
            .env("RESOURCE_PROVISIONING_DATABASE_URL", self.role_url("resource_provisioning_api"))
            .env("RESOURCE_PROVISIONING_BROKER_URL_FILE", url("resource_provisioning"))
            .env("SITE_COORDINATION_VIEWS_BROKER_URL_FILE", url("site_coordination"))
            .env("SITE_API_BETO_CA_FILE", self.broker.ca_file())
            .env("SITE_API_BETO_SECONDS", BETO_SECONDS.to_string())
            .env("SITE_API_LOGIN_ISSUER", self.issuer.issuer())
            .env("SITE_API_LOGIN_AUDIENCE", AUDIENCE)
            .env("SITE_API_LOGIN_CA_FILE", folder.join("ca.pem"))
            .env("SITE_API_AUTHORITY_GRANTS_JSON", json!({ admission: ENVIRONMENT }).to_string())
            .env("SITE_API_TOKEN_REVIEW_URL", self.kube.origin())
            .env("SITE_API_TOKEN_REVIEW_CA_FILE", folder.join("ca.pem"))
            .env("SITE_API_TOKEN_REVIEW_TOKEN_FILE", folder.join("reviewer-token"));
        command
    }
}

/// Whose Runs they are.
pub(crate) const PROJECT: &str = "project-1";

/// Longer than any run, in seconds.
const TOKEN_SECONDS: u32 = 24 * 3600;
/// Longer than any run.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// What a rule of the policy says that allows a member something in the Project.
pub(crate) fn rule(permission: &str, member: &str) -> Value {
    json!({ "permission": permission, "member": member, "project": PROJECT, "site": SITE })
}

fn write_policy(folder: &Path, rules: &[Value]) -> Result<(), Box<dyn Error>> {
    let new = folder.join("policy.new");
    fs::write(&new, json!({ "version": 1, "rules": rules }).to_string())?;
    // The responder never sees half of it.
    Ok(fs::rename(new, folder.join("policy.json"))?)
}

/// A node that knows what `site-admin broker definitions` prints, and the URLs of its users.
async fn broker(site: &TestSite, urls: &Path) -> Result<Broker, Box<dyn Error>> {
    const SOMEWHERE: &str = "broker.example:5671";
    let folder = urls.display().to_string();
    let place = format!("amqps://{SOMEWHERE}");
    let printed =
        site.admin(&["broker", "definitions", "--directory", &folder, "--broker", &place])?;
    let broker = Broker::start_defined(&[], &printed).await?;
    let (_, port) = broker.ports();
    for entry in fs::read_dir(urls)? {
        let path = entry?.path();
        let url = fs::read_to_string(&path)?.replace(SOMEWHERE, &format!("127.0.0.1:{port}"));
        fs::write(&path, url)?;
    }
    Ok(broker)
}

fn start_responder(folder: &Path, broker: &Broker) -> Result<Process, Box<dyn Error>> {
    let mut command = Command::new(bin("site-admin"));
    command
        .args(["beto", "respond", "--policy"])
        .arg(folder.join("policy.json"))
        .env("BETO_RESPONDER_BROKER_URL_FILE", folder.join("broker/beto.url"))
        .env("BETO_RESPONDER_BROKER_CA_FILE", broker.ca_file());
    Ok(Process::start_ending_by(command, LastSignal::Kill)?)
}

async fn start_site_api(command: Command) -> Result<Process, Box<dyn Error>> {
    let process = Process::start_ending_by(command, LastSignal::Kill)?;
    let listens = |line: &str| line.contains("\"site_api.listening\"");
    process.wait_for_line("that it listens", READY_WITHIN, listens).await?;
    Ok(process)
}
