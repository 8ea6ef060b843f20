//! The seam behind which a quorum of brokers will stand: propose, wait for what was decided, watch.
//!
//! Today's implementation is one broker with its own log. Nothing else in the broker can tell.

use std::sync::Arc;

use tackboard_logic::metadata::{Command, Image, MetadataRefusal};
use tackboard_schema::ErrorCode;
use tokio::sync::watch;

use crate::bridge::ProposalResult;

use super::metadata_log::MetadataLog;

/// Who decides about metadata.
pub trait MetadataQuorum {
    /// Decides commands in the order given. When it returns, what was accepted is durable and applied,
    /// and [`MetadataQuorum::watch`] shows it. One answer for each command.
    fn propose(&mut self, commands: Vec<Command>) -> impl Future<Output = Vec<ProposalResult>>;

    /// Returns a version such that everything decided before the call is at or below it.
    ///
    /// # Errors
    /// When this broker cannot know what was decided.
    fn read_barrier(&mut self) -> impl Future<Output = Result<u64, MetadataRefusal>>;

    /// The newest image, now and after every change.
    fn watch(&self) -> watch::Receiver<Arc<Image>>;

    /// Why nothing can be decided any more until a restart, if so.
    fn failure(&self) -> Option<&str>;
}

/// One broker alone: what its log holds is decided.
#[derive(Debug)]
pub struct LocalQuorum {
    log: MetadataLog,
    images: watch::Sender<Arc<Image>>,
}

impl LocalQuorum {
    /// Takes over an open log.
    pub fn new(log: MetadataLog) -> Self {
        let images = watch::Sender::new(log.image());
        Self { log, images }
    }
}

impl MetadataQuorum for LocalQuorum {
    async fn propose(&mut self, commands: Vec<Command>) -> Vec<ProposalResult> {
        let answers = self.log.propose(commands);
        self.images.send_if_modified(|image| {
            let newest = self.log.image();
            let changed = newest.version != image.version;
            *image = newest;
            changed
        });
        answers
    }

    async fn read_barrier(&mut self) -> Result<u64, MetadataRefusal> {
        match self.log.failure() {
            None => Ok(self.log.image().version),
            Some(reason) => Err(MetadataRefusal {
                code: ErrorCode::KafkaStorageError,
                message: format!("the metadata log failed: {reason}"),
            }),
        }
    }

    fn watch(&self) -> watch::Receiver<Arc<Image>> {
        self.images.subscribe()
    }

    fn failure(&self) -> Option<&str> {
        self.log.failure()
    }
}
