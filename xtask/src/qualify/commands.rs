//! The lane `commands`: Sites, listeners and Runtimes under faults, and a checker over the whole
//! history.

#[expect(dead_code, unused_imports, reason = "the lane joins it")]
mod history;
#[cfg_attr(not(test), expect(dead_code, reason = "the lane joins it"))]
#[expect(unused_imports, reason = "the lane joins it")]
mod producers;
