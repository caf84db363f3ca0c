//! Waiting for a state. There is no waiting for a time here, on purpose.

use std::time::Duration;

use tokio::time::Instant;

/// Between two looks at the state.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks `probe` again and again until it answers `Some`, and returns that.
///
/// `within` should be generous: a slow machine is no defect.
///
/// # Panics
///
/// With `what` (written so that "waited 10s for …" reads well) when `within` is over.
pub async fn eventually<T>(
    within: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {within:?} for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_answer_is_returned() {
        let mut asked = 0;
        let found = eventually(Duration::from_secs(30), "the third look", async || {
            asked += 1;
            (asked == 3).then_some(asked)
        })
        .await;
        assert_eq!(found, 3);
    }

    #[tokio::test]
    #[should_panic(expected = "waited 50ms for a day that never comes")]
    async fn a_state_that_never_comes_panics_with_its_name() {
        eventually(Duration::from_millis(50), "a day that never comes", async || None::<()>).await;
    }
}
