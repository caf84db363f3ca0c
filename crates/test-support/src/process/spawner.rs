//! Starts children so that they die with this process.
//!
//! `PR_SET_PDEATHSIG` fires when the *thread* that made the child ends, so every child is made by
//! one thread that lives as long as the process.

use std::{
    io,
    path::Path,
    process::{Child, Command},
    sync::{
        OnceLock,
        mpsc::{self, Sender},
    },
    thread,
};

use super::LastSignal;

type Order = (Command, Sender<io::Result<Child>>);

/// Starts a command from the thread that never ends.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Order>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in inbox {
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, child) = mpsc::channel();
    spawner.send((command, answer)).expect("the spawner never ends");
    child.recv().expect("the spawner answers every order")
}

/// The same command under `setpriv --pdeathsig`, where that is installed; `exec` keeps the process
/// id. A command's `env_clear` can't be seen from outside and is lost.
pub(super) fn dying_with_us(command: Command, signal: LastSignal) -> Command {
    const SETPRIV: &str = "/usr/bin/setpriv";
    if !Path::new(SETPRIV).exists() {
        return command;
    }
    let mut wrapped = Command::new(SETPRIV);
    let signal = match signal {
        LastSignal::Kill => "KILL",
        LastSignal::Interrupt => "INT",
        LastSignal::Terminate => "TERM",
    };
    wrapped.args(["--pdeathsig", signal, "--"]);
    wrapped.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped
}
