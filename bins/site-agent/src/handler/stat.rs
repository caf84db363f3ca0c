//! What the kernel tells of processes, see proc(5).

use std::{fs, io, path::Path};

const PROC: &str = "/proc";

/// A process at the moment when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// The process group that it is in.
    pub(super) group: i32,
    /// The session that its group is in.
    pub(super) session: i32,
    /// When it was started, in the kernel's ticks since boot: tells it from a later process that
    /// has its id.
    pub(super) start: u64,
    /// It may still do something; a zombie does not.
    pub(super) works: bool,
}

impl Stat {
    /// Looks at one process; `None` when it is gone.
    pub(super) fn of(id: i32) -> io::Result<Option<Self>> {
        Self::read(&Path::new(PROC).join(id.to_string()))
    }

    /// Looks at every process that we may see, one after the other: one that is started meanwhile
    /// may be missed.
    pub(super) fn all() -> io::Result<Vec<Self>> {
        Self::all_in(Path::new(PROC))
    }

    fn all_in(proc: &Path) -> io::Result<Vec<Self>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(proc)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_str().is_none_or(|name| name.parse::<i32>().is_err()) {
                continue;
            }
            match Self::read(&entry.path()) {
                // Another user's, where /proc is mounted with `hidepid`; or one that some kernel
                // tells of in a way that we don't know: whoever it is, it does not keep us from
                // seeing the others.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidData
                    ) => {}
                stat => all.extend(stat?),
            }
        }
        Ok(all)
    }

    fn read(process: &Path) -> io::Result<Option<Self>> {
        match fs::read(process.join("stat")) {
            Ok(text) => parse(&text).map(Some).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a process status can't be read")
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            // It ended while its file was read.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

pub(super) fn parse(text: &[u8]) -> Option<Stat> {
    // The name, in parentheses, may hold any bytes; after it come the fields from 3 on.
    let text = String::from_utf8_lossy(text);
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    // The first thread of a process can end before the others: then they still work.
    let threads: u64 = field(20)?.parse().ok()?;
    let works = !matches!(field(3)?, "Z" | "X") || threads > 1;
    Some(Stat {
        group: field(5)?.parse().ok()?,
        session: field(6)?.parse().ok()?,
        start: field(22)?.parse().ok()?,
        works,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &[u8], state: &str, threads: u32) -> Option<Stat> {
        let rest = format!(") {state} 1 5 6 0 0 0 0 0 0 0 0 0 0 0 0 0 {threads} 0 22 0 0\n");
        parse(&[b"7 (", name, rest.as_bytes()].concat())
    }

    #[test]
    fn a_name_of_any_bytes_hides_no_field() {
        for name in [&b"sh"[..], b"a b", b") Z 1 2 3", b"(", b"\xff\xfe", b""] {
            let expected = Stat { group: 5, session: 6, start: 22, works: true };
            assert_eq!(stat(name, "S", 1), Some(expected), "{name:?}");
        }
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"7 (sh) S 1 5"), None);
    }

    #[test]
    fn a_process_that_can_not_be_read_hides_no_other_and_failing_to_look_is_an_error() {
        let proc = tempfile::tempdir().unwrap();
        let process = |name: &str| {
            fs::create_dir(proc.path().join(name)).unwrap();
            proc.path().join(name).join("stat")
        };
        fs::write(process("7"), "7 (sh) S 1 5 6 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 22 0 0\n").unwrap();
        fs::write(process("8"), "8 (sh) S").unwrap();
        fs::write(process("self"), "").unwrap();
        process("9");
        let seen = Stat { group: 5, session: 6, start: 22, works: true };
        assert_eq!(Stat::all_in(proc.path()).unwrap(), [seen]);
        let unknown = Stat::read(&proc.path().join("8")).unwrap_err();
        assert_eq!(unknown.kind(), io::ErrorKind::InvalidData, "for the leader it is an error");
        fs::create_dir(process("10")).unwrap();
        Stat::all_in(proc.path()).unwrap_err();
    }

    #[test]
    fn a_zombie_works_only_while_it_has_other_threads() {
        for (state, threads, works) in
            [("Z", 1, false), ("X", 0, false), ("Z", 2, true), ("R", 1, true), ("D", 1, true)]
        {
            assert_eq!(stat(b"sh", state, threads).unwrap().works, works, "{state} {threads}");
        }
    }
}
