//! One connection: bytes in both directions, and what may happen to them.

use std::{
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    sync::watch,
};

use super::{Faults, Shared, reset};
use crate::Random;

const PIECE_BYTES: usize = 16 * 1024;

/// No TLS alert is as large, and each answer is larger.
const ALERT_BYTES: usize = 64;

/// `at_start` is what was seen when the connection was accepted.
pub(super) async fn serve(
    mut client: TcpStream,
    upstreams: &[SocketAddr],
    shared: &Shared,
    mut random: Random,
    at_start: Faults,
) {
    let mut faults = shared.faults.subscribe();
    let mut server = None;
    let ends = |faults: &Faults| faults.cuts != at_start.cuts || faults.html;
    let cut = tokio::select! {
        _ = faults.wait_for(ends) => {
            shared.counts.cut.one();
            true
        }
        cut = pass_on(&mut client, &mut server, upstreams, shared, &mut random) => cut,
    };
    if cut {
        reset(&client);
        server.iter().for_each(reset);
    }
}

/// Returns when both sides have ended, or one is broken; whether it is to be reset.
async fn pass_on(
    client: &mut TcpStream,
    server: &mut Option<TcpStream>,
    upstreams: &[SocketAddr],
    shared: &Shared,
    random: &mut Random,
) -> bool {
    let mut faults = shared.faults.subscribe();
    out_of_black_hole(&mut faults, shared).await;
    let Some(connected) = connect(upstreams).await else {
        shared.counts.unreachable.one();
        return true;
    };
    let server = server.insert(connected);
    if client.set_nodelay(true).and(server.set_nodelay(true)).is_err() {
        return true;
    }
    let turns = Mutex::new(Turns::default());
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let pump = |direction, random| Pump {
        direction,
        turns: &turns,
        shared,
        faults: shared.faults.subscribe(),
        random,
    };
    let there = pump(Direction::Request, random.split()).run(from_client, to_server);
    let back = pump(Direction::Answer, random.split()).run(from_server, to_client);
    tokio::try_join!(there, back).is_err()
}

async fn connect(upstreams: &[SocketAddr]) -> Option<TcpStream> {
    for upstream in upstreams {
        if let Ok(server) = TcpStream::connect(upstream).await {
            return Some(server);
        }
    }
    None
}

async fn out_of_black_hole(faults: &mut watch::Receiver<Faults>, shared: &Shared) {
    if faults.borrow().black_hole {
        shared.counts.held.one();
        // The sender lives as long as the proxy.
        let _ = faults.wait_for(|faults| !faults.black_hole).await;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Request,
    Answer,
}

struct Pump<'a> {
    direction: Direction,
    turns: &'a Mutex<Turns>,
    shared: &'a Shared,
    faults: watch::Receiver<Faults>,
    random: Random,
}

impl Pump<'_> {
    /// Passes on until the end, which it passes on too.
    async fn run(mut self, mut from: ReadHalf<'_>, mut to: WriteHalf<'_>) -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let length = from.read(&mut buffer).await?;
            self.delay().await;
            out_of_black_hole(&mut self.faults, self.shared).await;
            if length == 0 {
                return to.shutdown().await;
            }
            if self.is_answer(length) && self.shared.takes_answer() {
                self.shared.counts.answers_cut.one();
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            to.write_all(&buffer[..length]).await?;
            self.turns().note(self.direction);
        }
    }

    async fn delay(&mut self) {
        let longest = self.faults.borrow().longest_delay;
        if !longest.is_zero() {
            self.shared.counts.delayed.one();
            tokio::time::sleep(self.random.duration(longest)).await;
        }
    }

    fn is_answer(&self, length: usize) -> bool {
        self.direction == Direction::Answer && length > ALERT_BYTES && self.turns().is_answer_due()
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who spoke how often. A caller sends no request before it has the answer to the one before, and
/// the first two turns of each side can be the handshake: from the third turn of the caller on, what
/// it sends is a request, and what comes next from the server is the answer to it.
#[derive(Default)]
struct Turns {
    caller: u32,
    is_callers: bool,
}

impl Turns {
    fn note(&mut self, direction: Direction) {
        let is_callers = direction == Direction::Request;
        if is_callers && !self.is_callers {
            self.caller += 1;
        }
        self.is_callers = is_callers;
    }

    fn is_answer_due(&self) -> bool {
        self.is_callers && self.caller > 2
    }
}
