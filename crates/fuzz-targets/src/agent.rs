//! What an agent finds: its journal, the note of a handler, and what the kernel says of a process.

use site_agent::parsers::{self, Replayed};
use site_client::Origin;

/// A journal that is taken can be written anew and says the same then; a last line that is cut short
/// never happened.
pub(crate) fn journal(bytes: &[u8]) {
    let origin = Origin::parse("https://site.example").unwrap();
    let keep = (3, 64, 1024);
    let Ok(Replayed { length, shortest }) = parsers::journal(bytes, &origin, keep) else { return };
    let length = usize::try_from(length).unwrap();
    if length > 0 {
        crate::taken();
    }
    assert!(length <= bytes.len());
    let again = parsers::journal(&shortest, &origin, keep).unwrap();
    assert_eq!((again.length, &again.shortest), (shortest.len() as u64, &shortest));
    let counts = &bytes[..length];
    let whole = parsers::journal(counts, &origin, keep).unwrap();
    assert_eq!((whole.length, &whole.shortest), (length as u64, &shortest));
    // Cut anywhere in its last line, it is what it was before that line.
    let before = counts[..length - 1].iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
    if let Some(before) = before {
        let earlier = parsers::journal(&counts[..before], &origin, keep).unwrap();
        for cut in [before + 1, before + (length - before) / 2, length - 1] {
            let torn = parsers::journal(&counts[..cut], &origin, keep).unwrap();
            assert_eq!(torn, earlier);
        }
    }
}

/// The first line is a note; all of it is the name of a process, which hides nothing of what the
/// kernel says after it.
pub(crate) fn process(bytes: &[u8]) {
    let machine = "boot pid:[1]";
    if let Some(note) =
        std::str::from_utf8(bytes).ok().and_then(|text| text.split_inclusive('\n').next())
        && let Some((id, again)) = parsers::note(note, machine)
    {
        crate::taken();
        assert!(id > 1, "kill(2) would take it for more than one group");
        assert_eq!(parsers::note(&again, machine), Some((id, again.clone())));
        assert!(note.ends_with(&format!(" {machine}\n")));
        assert_eq!(parsers::note(note, "another"), None);
    }
    let _ = parsers::process(bytes);
    for (state, works) in [("S", true), ("Z", false)] {
        let rest = format!(") {state} 1 5 6 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 22 0 0\n");
        let text = [b"7 (", bytes, rest.as_bytes()].concat();
        assert_eq!(parsers::process(&text), Some((5, 6, 22, works)));
    }
}
