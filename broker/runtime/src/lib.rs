//! Tackboard's habits of glommio: executors, watchdog, inboxes, deadlines, vectored sends.
