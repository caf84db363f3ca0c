//! An error and its sources on one line.
//!
//! A crate of its own, because what serves over hyper, what a context uses and what calls outwards
//! all tell errors in this one form, and none of them may use another for it.

use std::error::Error;

/// An error and its sources on one line, from the outermost to the innermost: the form of the field
/// `error` of every event.
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut chain = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        chain.push_str(": ");
        chain.push_str(&error.to_string());
        source = error.source();
    }
    chain
}

#[cfg(test)]
mod tests {
    use std::{fmt, io};

    use super::*;

    #[derive(Debug)]
    struct Outer(Option<Box<Self>>, io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(if self.0.is_some() { "the outermost" } else { "the next" })
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            match &self.0 {
                Some(next) => Some(&**next),
                None => Some(&self.1),
            }
        }
    }

    #[test]
    fn every_source_is_told_from_the_outermost_to_the_innermost() {
        let innermost = || io::Error::other("the innermost");
        assert_eq!(error_chain(&innermost()), "the innermost");
        let chain = Outer(Some(Box::new(Outer(None, innermost()))), innermost());
        assert_eq!(error_chain(&chain), "the outermost: the next: the innermost");
    }
}
