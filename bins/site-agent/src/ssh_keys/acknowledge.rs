//! What is durable is told, and what the files hold is attested.

use std::time::Duration;

use site_protocol::{Digest, SshAcknowledgement, SshAttested};
use ssh_keys::SetDigest;
use tokio::time::Instant;

use super::{
    Break, SshKeys, Why,
    folder::{Ours, Place},
    refresh::MOMENTS,
    state::Position,
};

/// Users whose files are read back before others may work for a moment.
const PART: usize = 256;

/// An attestation that came too late for a head that moved on is repeated after this many times what
/// it took.
const REST: u32 = 10;

impl SshKeys {
    /// Acknowledges where there is something to tell.
    pub(super) async fn acknowledge(&mut self, position: &Position) -> Result<(), Break> {
        let begun = Instant::now();
        let attest = self.at_head && self.attest_at <= begun;
        if !attest && !self.unacknowledged {
            return Ok(());
        }
        if attest && position.failures.are_cut() {
            // Nobody could compare the set. What failed is not all known here.
            return Err(Break::Snapshot(Why::Failures));
        }
        let set_digest = if attest { self.read_back(position).await? } else { None };
        let took = begun.elapsed();
        let cursor = position.cursor;
        let acknowledgement = SshAcknowledgement {
            cursor: cursor.to_string(),
            chain_digest: cursor.chain_digest(),
            set_digest,
            failures: position.failures.told(),
        };
        let answer = tokio::select! {
            biased;
            () = self.stop.asked() => return Err(Break::End(self.ending())),
            answer = self.client.ssh_acknowledge(cursor, &acknowledgement) => answer,
        };
        let stored = answer.map_err(|error| {
            if attest {
                // What is durable is told also where the comparison is what fails.
                self.unacknowledged = true;
                self.attest_at = Instant::now() + self.pace.attest_every;
            }
            Break::Call("ssh_acknowledge", error)
        })?;
        self.unacknowledged = false;
        self.backoff.reset();
        if !attest {
            return Ok(());
        }
        self.attest_at = Instant::now() + self.pace.attest_every;
        match stored.attested.filter(|_| set_digest.is_some()) {
            Some(SshAttested::Match) => {
                self.mended_at = None;
                tracing::info!(ssh.seq = cursor.seq(), "ssh_keys.attested");
            }
            Some(SshAttested::Mismatch) => self.mend(Why::Mismatch)?,
            Some(SshAttested::Behind) => {
                let rest = (took * REST).max(Duration::from_secs(1));
                self.attest_at = Instant::now() + rest.min(self.pace.attest_every);
            }
            None => {}
        }
        Ok(())
    }

    /// The digest of what the files hold; `None` where a file was changed that can't be mended now.
    async fn read_back(&mut self, position: &Position) -> Result<Option<Digest>, Break> {
        self.hold_folder()?;
        let mut set = SetDigest::new();
        for users in self.folder.users()?.chunks(PART) {
            for user in users {
                match self.folder.look(user)? {
                    Place::Ours(Ours { content, .. }) => {
                        // Written before a restart, and the state before that.
                        if content.lease - position.lease > MOMENTS
                            && !position.failures.have_a_removal(user)
                        {
                            self.renew_all("a file says a later end than the lease");
                        }
                        let keys = content.keys.iter();
                        for (id, held) in keys.filter(|(id, _)| !position.failures.has(user, id)) {
                            // Both are sorted as the digest wants them.
                            set.add(user, id, &held.key).map_err(std::io::Error::other)?;
                        }
                    }
                    Place::Changed(_) => {
                        self.mend(Why::Changed)?;
                        return Ok(None);
                    }
                    Place::Free | Place::Taken(_) => {}
                }
            }
            self.breathe().await?;
        }
        Ok(Some(Digest::from_bytes(*set.finish().as_bytes())))
    }
}
