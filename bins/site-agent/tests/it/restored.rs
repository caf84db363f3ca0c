//! An older database comes back under an agent that runs, and it is still, or no longer, its stream.

use serde_json::json;

use crate::{
    agent::{agent, exit_code, wait_for_event},
    stream::Stream,
};

const SCRIPT: &str = "echo $SEQ $TRY >> $DIR/runs; echo $$";

/// How an older database comes back under an agent that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Restored {
    /// As it was before the session was opened.
    WithoutTheSession,
    /// With the session, and without the last results.
    WithoutResults,
    /// Also without the last commands.
    WithoutCommands,
    /// With other commands since.
    WithOtherCommands,
}

#[tokio::test]
async fn a_database_that_is_restored_under_a_running_agent_does_not_stop_it() {
    for (restored, code) in [
        (Restored::WithoutTheSession, json!("history_diverged")),
        (Restored::WithoutResults, json!(null)),
        (Restored::WithoutCommands, json!("cursor_ahead")),
        (Restored::WithOtherCommands, json!("history_diverged")),
    ] {
        let stream = Stream::of(2);
        let served = stream.clone();
        let before = stream.backup();
        let mut backup = None;
        let mut done = false;
        let mut before = Some(before);
        let (agent, _peer) = agent(SCRIPT, move |request| {
            let polls = request.method == "GET";
            if polls && backup.is_none() && !done {
                backup = Some(served.backup());
                served.push_all(&["cmd_3", "cmd_4"]);
            }
            let results = served.results().len();
            let at = match restored {
                Restored::WithoutTheSession | Restored::WithoutResults => !polls && results == 3,
                Restored::WithoutCommands | Restored::WithOtherCommands => polls && results == 4,
            };
            if at && !done {
                done = true;
                let backup = backup.take().unwrap();
                match restored {
                    Restored::WithoutTheSession => served.restore(before.take().unwrap()),
                    _ => served.restore(backup),
                }
                match restored {
                    Restored::WithoutTheSession | Restored::WithoutResults => {
                        served.push_all(&["cmd_3", "cmd_4"]);
                    }
                    Restored::WithoutCommands => {}
                    Restored::WithOtherCommands => {
                        served.push_all(&["cmd_4", "cmd_3"]);
                    }
                }
            }
            served.answer(request)
        })
        .await;
        let process = agent.start();
        let recovering = wait_for_event(&process, "message", "runtime.recovering").await;
        assert_eq!(recovering["problem.code"], code, "{restored:?}");
        let all = if restored == Restored::WithoutCommands { 2 } else { 4 };
        stream.wait_for_results(all).await;
        assert_eq!(agent.lines("runs"), ["1 1", "2 1", "3 1", "4 1"], "{restored:?}");
        assert!(process.exit().is_none());
    }
}

/// What happens to the stream of a Runtime that was taken over and does not know it yet.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Trimmed,
    Restored,
    RestoredAndTrimmed,
}

#[tokio::test]
async fn a_runtime_that_was_taken_over_does_not_take_the_stream_back_as_if_it_had_to_recover() {
    for meanwhile in [Meanwhile::Trimmed, Meanwhile::Restored, Meanwhile::RestoredAndTrimmed] {
        let stream = Stream::of(1);
        let served = stream.clone();
        let mut backup = None;
        let (agent, peer) = agent(SCRIPT, move |request| {
            let backup = backup.get_or_insert_with(|| {
                let backup = served.backup();
                served.push("cmd_2", |_| ());
                backup
            });
            if request.method == "GET" && served.results().len() == 2 {
                // Its place is refused by each of them before its session is.
                match meanwhile {
                    Meanwhile::Trimmed => {
                        served.taken_over();
                        served.push("cmd_3", |_| ());
                        served.answer_due(b"{\"outcome\":\"succeeded\"}");
                        served.trim(3);
                    }
                    Meanwhile::Restored | Meanwhile::RestoredAndTrimmed => {
                        served.restore(std::mem::replace(backup, served.backup()));
                        served.taken_over();
                        served.taken_over();
                        served.void_due();
                    }
                }
                if matches!(meanwhile, Meanwhile::RestoredAndTrimmed) {
                    served.trim(1);
                }
            }
            served.answer(request)
        })
        .await;
        let process = agent.start();
        assert_eq!(exit_code(&process).await, Some(76), "{meanwhile:?}");
        let sessions = peer.received().iter().filter(|request| request.method == "POST").count();
        assert_eq!(sessions, 1, "{meanwhile:?}");
        assert_eq!(agent.lines("runs"), ["1 1", "2 1"], "{meanwhile:?}");
    }
}

/// How an older database comes back while a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// Its command is not there, nor the one before.
    Commands,
    /// The result of the command before is not there.
    ResultBefore,
}

#[tokio::test]
async fn a_database_that_is_restored_under_a_running_handler_is_noticed_with_its_result() {
    let of_a_run = |command: &mut site_protocol::Command| {
        command.run_id = Some("run-1".to_owned());
    };
    for (lost, code) in [(Lost::Commands, "not_found"), (Lost::ResultBefore, "predecessor_missing")]
    {
        let stream = Stream::of(0);
        let served = stream.clone();
        let enqueue = move || ["cmd_1", "cmd_2"].map(|id| served.push(id, of_a_run));
        let served = stream.clone();
        let (mut backup, mut restored) = (None, false);
        let script = "echo $SEQ >> $DIR/runs; echo $SEQ > $SITE_AGENT_OUTPUT_FILE; echo $SEQ";
        let (agent, _peer) = agent(script, move |request| {
            let call = (request.method.as_str(), restored, lost);
            if call.0 == "GET" && backup.is_none() && !restored {
                let empty = served.backup();
                enqueue();
                backup = Some(if lost == Lost::Commands { empty } else { served.backup() });
            } else if call == ("POST", true, Lost::Commands) {
                enqueue();
            } else if request.target.contains("cmd_2/outputs") && !restored {
                restored = true;
                served.restore(backup.take().unwrap());
            }
            served.answer(request)
        })
        .await;
        let process = agent.start();
        let refused = wait_for_event(&process, "call.name", "store_output").await;
        assert_eq!(refused["problem.code"], code);
        wait_for_event(&process, "message", "runtime.recovering").await;
        stream.wait_for_results(2).await;
        assert_eq!(stream.outputs(), ["1", "2"], "{lost:?}");
        assert_eq!(agent.lines("runs"), ["1", "2"], "{lost:?}");
        assert_eq!(stream.private_outputs().len(), 2);
    }
}
