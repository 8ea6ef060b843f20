//! Wakes one task of the same core.

use std::{cell::Cell, future::poll_fn, task::Poll, task::Waker};

/// A core-local flag with one waiter: set by anyone on the core, consumed by the task that waits.
///
/// Setting it several times before the waiter runs wakes it once. It never leaves its core.
#[derive(Default)]
pub struct Notify {
    set: Cell<bool>,
    waiter: Cell<Option<Waker>>,
}

impl Notify {
    /// A flag that is not set.
    pub fn new() -> Self {
        Notify::default()
    }

    /// Sets the flag and wakes the waiter.
    pub fn notify(&self) {
        self.set.set(true);
        if let Some(waker) = self.waiter.take() {
            waker.wake();
        }
    }

    /// Waits until the flag is set and clears it.
    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.set.take() {
                return Poll::Ready(());
            }
            self.waiter.set(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }
}
