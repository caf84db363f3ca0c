//! Bringing results and private outputs to the Site API.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use site_protocol::{
    BatchAnswer, BatchedAnswer, Code, CommandPage, Digest, OutputReceipt, Receipt, ReceiptAndNext,
    paths,
};

use crate::{
    BadAnswer, CallError, SiteClient, Writer,
    answer::Answer,
    chain::{check_page, output_digest, result_digest},
    client::{JSON, in_time},
};

/// How much longer than any other call the upload of a private output may take.
const UPLOAD: Duration = Duration::from_secs(30);

/// Whether a result or an output was stored by this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Stored now.
    New,
    /// The same bytes were stored before.
    Same,
}

/// A result to be stored.
///
/// `Debug` tells the command and not the result, which can be private.
#[derive(Clone)]
pub struct ResultToStore<'a> {
    /// The command that it answers.
    pub command_id: &'a str,
    /// The command's sequence.
    pub seq: u64,
    /// The chain digest at the command, which a page after it has to continue.
    pub chain_digest: Digest,
    /// The result, the same bytes in every try.
    pub result: Bytes,
}

/// What the answer to a result should bring along.
#[derive(Clone, Copy, Debug)]
pub struct Next {
    /// The most commands, from 1 to 64.
    pub limit: u32,
    /// How long the server may wait for a command when there is none, in whole seconds. The receipt
    /// waits with it.
    pub wait: Duration,
    /// The newest count of cancels that this side has seen.
    pub cancel_rev: u64,
}

/// A result that is stored.
#[derive(Debug)]
pub struct StoredResult {
    /// The receipt, which is for the bytes that were sent.
    pub receipt: Receipt,
    /// Whether this call stored it.
    pub stored: Stored,
    /// The page after the command, where it was asked for and a poll would not be refused.
    pub next: Option<CommandPage>,
}

/// What became of a batch.
#[derive(Debug)]
pub struct StoredResults {
    /// What became of each result, in their order.
    pub results: Vec<Result<(Receipt, Stored), CallError>>,
    /// The page after the last of the leading results that have an ending, where it was asked for.
    pub next: Option<CommandPage>,
}

impl SiteClient {
    /// Stores the result of a command. Sending the same bytes again is safe and gives the same
    /// receipt.
    ///
    /// # Errors
    ///
    /// [`CallError`]. After [`CallError::Transport`] it is unknown whether the result is stored:
    /// send the same bytes again.
    pub async fn store_result(
        &self,
        writer: &Writer,
        result: &ResultToStore<'_>,
        next: Option<&Next>,
    ) -> Result<StoredResult, CallError> {
        let path = paths::command_result(result.command_id) + &query(next);
        let body = Some((JSON, result.result.clone()));
        let call = self.call(Method::PUT, &path, Some(writer), body);
        stored_result(&in_time(self.time_for(next), call).await?, result, next)
    }

    /// Stores results of consecutive commands with one call. Each of them may be refused for
    /// itself, as it would be alone.
    ///
    /// # Errors
    ///
    /// [`CallError`] when the batch as a whole has no usable answer; then it is unknown which of
    /// them are stored: send the same bytes again.
    pub async fn store_results(
        &self,
        writer: &Writer,
        results: &[ResultToStore<'_>],
        next: Option<&Next>,
    ) -> Result<StoredResults, CallError> {
        let path = format!("{}{}", paths::COMMAND_RESULTS, query(next));
        let body = Some((JSON, batch_body(results)?));
        let call = self.call(Method::PUT, &path, Some(writer), body);
        stored_results(&in_time(self.time_for(next), call).await?, results, next)
    }

    /// Stores a private output of a command, before the result that names its digest. The same
    /// bytes again are safe.
    ///
    /// # Errors
    ///
    /// [`CallError`]. After [`CallError::Transport`] it is unknown whether the output is stored:
    /// send the same bytes again.
    pub async fn store_output(
        &self,
        writer: &Writer,
        command_id: &str,
        output: Bytes,
    ) -> Result<(OutputReceipt, Stored), CallError> {
        let (digest, bytes) = (output_digest(&output), output.len() as u64);
        let path = paths::command_output(command_id, &digest);
        let body = Some(("application/octet-stream", output));
        let call = self.call(Method::PUT, &path, Some(writer), body);
        let answer = in_time(self.timeouts.answer + UPLOAD, call).await?;
        let receipt: OutputReceipt = answer.json()?;
        if (receipt.command_id.as_str(), receipt.digest, receipt.bytes)
            != (command_id, digest, bytes)
        {
            return Err(CallError::BadAnswer(BadAnswer::OtherReceipt));
        }
        Ok((receipt, stored(answer.status)))
    }

    fn time_for(&self, next: Option<&Next>) -> Duration {
        self.timeouts.answer + next.map_or(Duration::ZERO, |next| next.wait)
    }
}

fn query(next: Option<&Next>) -> String {
    let Some(Next { limit, wait, cancel_rev }) = next else { return String::new() };
    let mut query = format!("?next={limit}&wait={}", wait.as_secs());
    if *cancel_rev > 0 {
        query.push_str(&format!("&cancelRev={cancel_rev}"));
    }
    query
}

/// The answer to a result.
pub(crate) fn stored_result(
    answer: &Answer,
    result: &ResultToStore<'_>,
    next: Option<&Next>,
) -> Result<StoredResult, CallError> {
    let (receipt, page) = match next {
        None => (answer.json()?, None),
        Some(next) => {
            let ReceiptAndNext { receipt, next: page } = answer.json()?;
            if let Some(page) = &page {
                check_next(page, result, next)?;
            }
            (receipt, page)
        }
    };
    check_receipt(&receipt, result)?;
    Ok(StoredResult { receipt, stored: stored(answer.status), next: page })
}

/// The answer to a batch.
pub(crate) fn stored_results(
    answer: &Answer,
    results: &[ResultToStore<'_>],
    next: Option<&Next>,
) -> Result<StoredResults, CallError> {
    let BatchAnswer { results: answers, next: page } = answer.json()?;
    if answers.len() != results.len() {
        return Err(CallError::BadAnswer(BadAnswer::OtherReceipt));
    }
    let leading = answers.iter().take_while(|answer| has_ending(answer)).count();
    let verdicts: Result<Vec<_>, _> =
        answers.into_iter().zip(results).map(|(answer, sent)| verdict(answer, sent)).collect();
    let last = leading.checked_sub(1).and_then(|index| results.get(index));
    let page = match (page, last, next) {
        (Some(page), Some(last), Some(next)) => {
            check_next(&page, last, next)?;
            Some(page)
        }
        // Also where a poll would be refused, which the next one tells.
        (None, _, _) => None,
        _ => return Err(CallError::BadAnswer(BadAnswer::OtherReceipt)),
    };
    Ok(StoredResults { results: verdicts?, next: page })
}

/// The batch with each result's own text.
pub(crate) fn batch_body(results: &[ResultToStore<'_>]) -> Result<Bytes, CallError> {
    #[derive(Serialize)]
    struct Batch<'a> {
        results: Vec<Item<'a>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Item<'a> {
        command_id: &'a str,
        result: &'a RawValue,
    }
    let items = results.iter().map(|result| {
        serde_json::from_slice(&result.result)
            .map(|text| Item { command_id: result.command_id, result: text })
    });
    let batch = items.collect::<Result<_, _>>().map(|results| Batch { results });
    batch
        .and_then(|batch| serde_json::to_vec(&batch))
        .map(Bytes::from)
        .map_err(|error| CallError::Transport(Box::new(error)))
}

fn check_next(page: &CommandPage, last: &ResultToStore<'_>, next: &Next) -> Result<(), CallError> {
    if page.commands.len() > usize::try_from(next.limit).unwrap_or(usize::MAX) {
        return Err(CallError::BadAnswer(BadAnswer::TooManyCommands));
    }
    check_page(page, last.seq, Some(&last.chain_digest), next.cancel_rev).map_err(CallError::Chain)
}

fn check_receipt(receipt: &Receipt, sent: &ResultToStore<'_>) -> Result<(), CallError> {
    let same = receipt.command_id == sent.command_id
        && receipt.seq == sent.seq
        && receipt.digest == result_digest(&sent.result);
    if same { Ok(()) } else { Err(CallError::BadAnswer(BadAnswer::OtherReceipt)) }
}

/// The outer error is of the whole answer, the inner one of this result.
fn verdict(
    answer: BatchedAnswer,
    sent: &ResultToStore<'_>,
) -> Result<Result<(Receipt, Stored), CallError>, CallError> {
    if answer.command_id != sent.command_id {
        return Err(CallError::BadAnswer(BadAnswer::OtherReceipt));
    }
    match (answer.receipt, answer.problem) {
        (Some(receipt), None) => {
            let stored = match answer.status {
                200 => Stored::Same,
                201 => Stored::New,
                _ => return Err(CallError::BadAnswer(BadAnswer::OtherReceipt)),
            };
            check_receipt(&receipt, sent)?;
            Ok(Ok((receipt, stored)))
        }
        (None, Some(problem)) if problem.status == answer.status => {
            Ok(Err(CallError::Problem(Box::new(problem))))
        }
        _ => Err(CallError::BadAnswer(BadAnswer::OtherReceipt)),
    }
}

/// Whether the command has a result now, or will never have one.
fn has_ending(answer: &BatchedAnswer) -> bool {
    let voided = |code: &str| code == Code::AlreadyVoided.as_str();
    matches!(answer.status, 200 | 201)
        || answer.problem.as_ref().is_some_and(|problem| voided(&problem.code))
}

fn stored(status: StatusCode) -> Stored {
    if status == StatusCode::CREATED { Stored::New } else { Stored::Same }
}

impl std::fmt::Debug for ResultToStore<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResultToStore")
            .field("command_id", &self.command_id)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}
