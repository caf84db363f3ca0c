//! Keys that change without end, while what brings them to the login node is killed and cut; after each
//! fault everything in force has to let in, and nothing else.

use std::{error::Error, time::Duration};

use test_support::{Random, postgres::Cluster};
use tokio::time::{Instant, sleep, timeout};

use super::{
    acknowledged::{acknowledged, behind, connect},
    cut_off::RECOVERS_WITHIN,
    files::{Seen, look},
    roster::Roster,
    sights::Sights,
};
use crate::{
    ssh_site::{KeyAdmin, SshSite},
    stop::Stop,
};

/// What is killed or cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// SIGKILL to the agent, some times: at random moments, or as soon as it has begun to write.
    Agent,
    /// SIGKILL to the agent as soon as an acknowledgement is stored, of which it has not heard.
    AgentAfterAcknowledgement,
    /// SIGKILL to the `ssh-access` that leads.
    Propagator,
    /// SIGKILL to `site-api`.
    SiteApi,
    /// SIGKILL to PostgreSQL.
    Postgres,
    /// Nothing gets through.
    BlackHole,
    /// A gateway answers in the place of `site-api`, and all connections are cut.
    Gateway,
}

/// All of them, which is a round.
pub(super) const ROUND: [Fault; 7] = [
    Fault::Agent,
    Fault::AgentAfterAcknowledgement,
    Fault::Propagator,
    Fault::SiteApi,
    Fault::Postgres,
    Fault::BlackHole,
    Fault::Gateway,
];

impl Fault {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent SIGKILL",
            Self::AgentAfterAcknowledgement => "agent SIGKILL after an acknowledgement",
            Self::Propagator => "ssh-access SIGKILL",
            Self::SiteApi => "site-api SIGKILL",
            Self::Postgres => "PostgreSQL SIGKILL",
            Self::BlackHole => "black hole",
            Self::Gateway => "HTML 503, connections cut",
        }
    }
}

/// Kills of the agent, and the longest time that it lives in between where that is random.
const KILLS: u32 = 5;
const LIVES: Duration = Duration::from_millis(500);
/// Kills of the agent right after an acknowledgement. Its answer is on the way for so long at most.
const KILLS_AFTER: u32 = 2;
const ANSWER_DELAY: Duration = Duration::from_millis(400);
/// Between two looks at what is acknowledged, or written.
const LOOK: Duration = Duration::from_millis(1);
/// How long a program stays dead, and the network bad.
const AWAY: Duration = Duration::from_millis(1500);

/// What is stormed, and what was seen meanwhile.
pub(super) struct Storm<'a> {
    pub(super) site: &'a mut SshSite,
    pub(super) cluster: &'a mut Cluster,
    pub(super) admin: &'a KeyAdmin,
    pub(super) random: Random,
    pub(super) seen: Sights,
}

impl Storm<'_> {
    /// Storms for so long, and to the end of a round.
    pub(super) async fn rage(
        &mut self,
        stop: &Stop,
        roster: &mut Roster,
        length: Duration,
    ) -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        let mut faults = Vec::new();
        loop {
            if faults.is_empty() {
                if began.elapsed() >= length {
                    return Ok(());
                }
                faults = shuffled(&mut self.random);
            }
            let Some(fault) = faults.pop() else { return Ok(()) };
            stop.unless(self.bring_about(fault, roster)).await??;
            *self.seen.faults.entry(fault).or_default() += 1;
            // What does not come back makes everything after it fail as well.
            if !stop.unless(self.recovers(fault, roster)).await?? {
                return Ok(());
            }
        }
    }

    /// Keys and accounts change until the fault is over.
    async fn bring_about(
        &mut self,
        fault: Fault,
        roster: &mut Roster,
    ) -> Result<(), Box<dyn Error>> {
        let (admin, mut random) = (self.admin, self.random.split());
        let name = self.site.name().to_owned();
        let over = tokio::sync::watch::Sender::new(false);
        let changes = async {
            while !*over.borrow() {
                roster.change(admin, &name, &mut random).await?;
            }
            Ok::<_, Box<dyn Error>>(())
        };
        let faults = async {
            let done = self.break_it(fault).await;
            over.send_replace(true);
            done
        };
        let (changed, done) = tokio::join!(changes, faults);
        changed.and(done)
    }

    async fn break_it(&mut self, fault: Fault) -> Result<(), Box<dyn Error>> {
        match fault {
            Fault::Agent => {
                for kill in 0..KILLS {
                    if kill % 2 == 0 {
                        // The moment of the kill is what is random; nothing waits for this time.
                        sleep(self.random.duration(LIVES)).await;
                    } else {
                        self.something_is_half_written().await?;
                    }
                    self.site.agent.kill();
                    self.compare().await?;
                    self.site.restart_agent()?;
                }
            }
            Fault::AgentAfterAcknowledgement => {
                for _ in 0..KILLS_AFTER {
                    self.kill_after_acknowledgement().await?;
                }
            }
            Fault::Propagator => {
                let leader = self.site.leader().unwrap_or_default();
                self.site.propagators[leader].kill();
                sleep(AWAY).await;
                self.site.restart_propagator(leader)?;
            }
            Fault::SiteApi => {
                self.site.site_api.kill();
                sleep(AWAY).await;
                self.site.restart_site_api().await?;
            }
            Fault::Postgres => {
                self.cluster.kill();
                self.cluster.restart().await?;
            }
            Fault::BlackHole => {
                self.site.network.black_hole(true);
                sleep(AWAY).await;
                self.site.network.black_hole(false);
            }
            Fault::Gateway => {
                self.site.network.html_503(true);
                sleep(AWAY).await;
                self.site.network.html_503(false);
                self.site.network.cut_all();
            }
        }
        Ok(())
    }

    /// Until a file stands beside its place, which keys that change all the time bring about.
    async fn something_is_half_written(&self) -> Result<(), Box<dyn Error>> {
        let folder = self.site.sshd.keys_folder();
        let began = Instant::now();
        while !look(&folder)?.iter().any(Seen::is_temporary) {
            if began.elapsed() > RECOVERS_WITHIN {
                return Err("the agent writes no file any more".into());
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// The agent dies between an acknowledgement that is stored and its answer: what it would do
    /// afterwards it never does.
    async fn kill_after_acknowledgement(&mut self) -> Result<(), Box<dyn Error>> {
        self.site.network.delay(ANSWER_DELAY);
        let client = connect(self.cluster).await?;
        let stored = async || acknowledged(&client, self.site.name(), "-infinity").await;
        let before = stored().await?.seq;
        let moved = async {
            while stored().await?.seq == before {
                sleep(LOOK).await;
            }
            Ok::<_, Box<dyn Error>>(())
        };
        timeout(RECOVERS_WITHIN, moved)
            .await
            .map_err(|_| "nothing was acknowledged any more")??;
        self.site.agent.kill();
        self.site.network.delay(Duration::ZERO);
        self.compare().await?;
        self.site.restart_agent()
    }

    /// Compares the acknowledged place with the files, while the agent is dead.
    async fn compare(&mut self) -> Result<(), Box<dyn Error>> {
        let folder = self.site.sshd.keys_folder();
        let behind = behind(self.cluster, self.site.name(), &folder).await?;
        self.seen.compared += 1;
        self.seen.behind.extend(behind);
        Ok(())
    }

    /// Whether the files become what they should be; then who is let in is looked at.
    async fn recovers(
        &mut self,
        fault: Fault,
        roster: &mut Roster,
    ) -> Result<bool, Box<dyn Error>> {
        self.seen.ended.extend(self.site.ended());
        let folder = self.site.sshd.keys_folder();
        let Some(took) = roster.settles(&folder, RECOVERS_WITHIN).await? else {
            self.seen.unsettled.push(format!("after {}", fault.name()));
            return Ok(false);
        };
        let seen = &mut self.seen;
        seen.longest_recovery = seen.longest_recovery.max(took);
        let roll = roster.call(&self.site.sshd).await?;
        seen.calls += 1;
        seen.let_in += roll.let_in;
        seen.refused += roll.refused;
        seen.longest_removal = seen.longest_removal.max(roll.longest);
        seen.wrong
            .extend(roll.wrong.iter().map(|wrong| format!("after {}: {wrong}", fault.name())));
        Ok(true)
    }
}

/// Each kind of fault before any comes again.
fn shuffled(random: &mut Random) -> Vec<Fault> {
    let mut faults = ROUND.to_vec();
    for last in (1..faults.len()).rev() {
        let other = usize::try_from(random.within(0..last as u64 + 1)).unwrap_or_default();
        faults.swap(last, other);
    }
    faults
}
