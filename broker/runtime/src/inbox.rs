//! The inbox of a core: how other cores and plain threads reach it.
//!
//! One long-lived task reads it. A bounded flume channel carries it, because it wakes a parked executor from any thread;
//! glommio's own shared channel makes an end that waits for an absent peer spin at 100 %.

/// The sending half; cloned freely, usable from any thread.
pub struct InboxSender<T>(flume::Sender<T>);

/// The reading half, owned by one task of the core.
pub struct InboxReceiver<T>(flume::Receiver<T>);

/// The inbox was full or its core has gone; the message comes back.
#[derive(Debug, PartialEq, Eq)]
pub struct Undelivered<T>(pub T);

/// Makes an inbox that holds at most `capacity` messages.
pub fn inbox<T>(capacity: usize) -> (InboxSender<T>, InboxReceiver<T>) {
    let (sender, receiver) = flume::bounded(capacity);
    (InboxSender(sender), InboxReceiver(receiver))
}

impl<T> Clone for InboxSender<T> {
    fn clone(&self) -> Self {
        InboxSender(self.0.clone())
    }
}

impl<T> InboxSender<T> {
    /// Sends without waiting.
    ///
    /// # Errors
    /// [`Undelivered`] with the message when the inbox is full or closed.
    pub fn send(&self, message: T) -> Result<(), Undelivered<T>> {
        self.0
            .try_send(message)
            .map_err(|error| Undelivered(error.into_inner()))
    }
}

impl<T> InboxSender<T> {
    /// Whether the reader has gone for good.
    pub fn is_closed(&self) -> bool {
        self.0.is_disconnected()
    }
}

impl<T> InboxReceiver<T> {
    /// The next message, or `None` when every sender has gone.
    pub async fn next(&self) -> Option<T> {
        self.0.recv_async().await.ok()
    }

    /// A message that is already there.
    pub fn take(&self) -> Option<T> {
        self.0.try_recv().ok()
    }
}
