//! Many callers at the same moment.

use std::sync::Arc;

use tokio::sync::Barrier;

/// Runs `each` `callers` times at once, all released by one barrier, and returns their answers in the
/// order of the callers.
///
/// # Panics
///
/// Where one of them does.
pub async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    callers: usize,
    each: impl Fn(usize) -> F,
) -> Vec<T> {
    let barrier = Arc::new(Barrier::new(callers));
    let started: Vec<_> = (0..callers)
        .map(|caller| {
            let (barrier, work) = (Arc::clone(&barrier), each(caller));
            tokio::spawn(async move {
                barrier.wait().await;
                work.await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in started {
        answers.push(task.await.expect("a caller panicked"));
    }
    answers
}
