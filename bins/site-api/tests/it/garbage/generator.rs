//! Mutations of requests that are in order, the same for the same seed.

/// A small pseudo-random generator (SplitMix64): garbage needs variety, not secrecy.
pub(super) struct Generator(u64);

/// What garbage likes to hold: bytes at which parsers turn.
const SPICES: [&[u8]; 16] = [
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b"\0",
    b"\xff\xfe",
    b" ",
    b"\t",
    b":",
    b"%",
    b"?",
    b"#",
    b"\"",
    b"{",
    b"[",
    b"\\ud800",
    b"99999999999999999999",
];

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is above 0.
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// The bytes with one to six changes.
    pub(super) fn mutate(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(6) {
            self.change(&mut bytes);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let at = self.below(bytes.len());
        let end = (at + 1 + self.below(24)).min(bytes.len());
        match self.below(6) {
            0 => bytes[at] = self.next().to_le_bytes()[0],
            1 => bytes[at] ^= 1 << self.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let spice = self.one_of(&SPICES);
                bytes.splice(at..at, spice.iter().copied());
            }
            _ => bytes.truncate(at),
        }
    }
}

#[test]
fn a_seed_gives_the_same_garbage_again() {
    let bytes = b"GET /healthz HTTP/1.1\r\n\r\n";
    let of = |seed| {
        let mut generator = Generator::new(seed);
        (0..20).map(|_| generator.mutate(bytes)).collect::<Vec<_>>()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    assert!(of(1).iter().any(|mutated| mutated != bytes));
}
