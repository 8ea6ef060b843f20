//! Makes the open logs of a core match its image: recovers and opens what is new, deletes what has a tombstone.

use std::{cell::RefCell, path::PathBuf, rc::Rc, sync::Arc, time::Instant};

use tackboard_logic::{
    ledger::LedgerImage,
    log::recovery::{RecoveredLog, RestartClass},
    metadata::{Image, Topic},
    shard::interface::{Input, LogId, OpenLog},
};
use tackboard_schema::{LeaderEpoch, Offset, TopicPartition};

use super::{
    Shard, groups::is_internal, run::Recovered, state::OpenedLog, topics::topic_log_config,
};
use crate::{
    bridge::PartitionFault,
    disk::{
        paths::{SegmentPart, segment_path},
        recover::{Known, recover},
        segments::sync_folder,
    },
};

/// Logs that one core recovers at a time.
pub const RECOVERIES_IN_FLIGHT_MAX: usize = 16;

impl Shard {
    /// Puts `image` in force. Returns the partitions that could not be opened, and what recovery did.
    pub async fn apply_image(
        self: &Rc<Self>,
        image: Arc<Image>,
        restart: RestartClass,
        ledger: &Arc<LedgerImage>,
    ) -> (Vec<PartitionFault>, Recovered) {
        let turn = self.opening.acquire_permit(1).await;
        let _turn = turn.expect("the semaphore is never closed");
        let before = self.state.borrow().topics.image().clone();
        self.enter(|state| {
            state.topics.replace(image.clone());
            let gone = image.gone_since(&before);
            gone.for_each(|topic| state.topic_gone(&topic.name));
        });
        self.delete_tombstoned(&image);
        let owned = self.state.borrow().topics.owned();
        for (partition, topic, _) in &owned {
            let log = self.state.borrow().topics.log(*partition);
            if let Some(log) = log {
                self.configure_if_changed(log, topic, &before);
            }
        }
        self.open_missing(restart, ledger).await
    }

    /// Tries again to open what could not be opened for want of space or inodes.
    pub(super) async fn open_what_waits(
        self: &Rc<Self>,
        restart: RestartClass,
        ledger: &Arc<LedgerImage>,
    ) {
        let turn = self.opening.acquire_permit(1).await;
        let _turn = turn.expect("the semaphore is never closed");
        let waits = {
            let state = self.state.borrow();
            state.topics.await_space() && !state.stopping
        };
        if waits {
            self.open_missing(restart, ledger).await;
        }
    }

    /// Opens the logs of this core that are not open. Whoever calls it has the turn.
    async fn open_missing(
        self: &Rc<Self>,
        restart: RestartClass,
        ledger: &Arc<LedgerImage>,
    ) -> (Vec<PartitionFault>, Recovered) {
        let owned = self.state.borrow().topics.owned();
        let mut faults = Vec::new();
        let mut total = Recovered::default();
        let mut missing = Vec::new();
        for (partition, topic, epoch) in owned {
            if self.state.borrow().topics.log(partition).is_none() {
                missing.push((partition, topic, epoch));
            }
        }
        for group in missing.chunks(RECOVERIES_IN_FLIGHT_MAX) {
            let tasks: Vec<_> = (group.iter().cloned())
                .map(|(partition, topic, epoch)| {
                    let shard = self.clone();
                    let ledger = ledger.clone();
                    self.spawn_net(async move {
                        shard
                            .open_log(partition, topic, epoch, restart, &ledger)
                            .await
                    })
                })
                .collect();
            for task in tasks {
                match task.await {
                    Ok(one) => total.add(&one),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        let open = self.state.borrow().topics.logs().count();
        self.metrics().partitions.set(open as u64);
        (faults, total)
    }

    /// Tells an open log of settings that it did not have in the image `before`.
    fn configure_if_changed(self: &Rc<Self>, log: LogId, topic: &Topic, before: &Image) {
        let known = before.topic_by_id(topic.id);
        if known.is_none_or(|known| known.config != topic.config) {
            let config = Box::new(topic_log_config(&self.config, topic));
            self.enter(|state| state.step(Input::Configure { log, config }, &[]));
        }
    }

    fn delete_tombstoned(self: &Rc<Self>, image: &Image) {
        let gone: Vec<_> = (self.state.borrow().topics.logs())
            .filter(|(partition, _)| image.tombstone(partition.topic).is_some())
            .collect();
        for (partition, log) in gone {
            self.enter(|state| {
                state.topics.deleted(partition);
                state.forget_groups(partition);
                state.step(Input::Delete { log }, &[]);
            });
        }
    }

    async fn open_log(
        self: &Rc<Self>,
        partition: TopicPartition,
        topic: Arc<Topic>,
        leader_epoch: LeaderEpoch,
        restart: RestartClass,
        ledger: &LedgerImage,
    ) -> Result<Recovered, PartitionFault> {
        let config = topic_log_config(&self.config, &topic);
        let known = Known {
            restart,
            ledger: ledger.logs.get(&partition),
        };
        let is_known = known.ledger.is_some();
        let folder = self.paths.log(partition);
        let (files, recovered) = recover(folder, partition, known, &config, self.access).await.map_err(|fault| {
            if self.state.borrow_mut().topics.failed(partition, fault.why) {
                tracing::error!(%partition, topic = %topic.name, %fault, "the partition could not be opened");
            }
            PartitionFault {
                partition,
                reason: format!("{}-{}: {fault}", topic.name, partition.partition),
            }
        })?;
        // An empty log has nothing that needs proof, as that of a new topic.
        let unproven = restart == RestartClass::DirReplaced
            && !is_known
            && recovered.log_end_offset > Offset(0);
        let report = self.report_recovered(partition, &topic.name, unproven, &recovered);
        self.report_unserved(partition, Some(&topic.name), &recovered);
        self.enter(|state| {
            let log = state.machine.reserve_log();
            let slot = log.slot as usize;
            if slot >= state.logs.len() {
                state.logs.resize_with(slot + 1, || None);
            }
            state.logs[slot] = Some(OpenedLog {
                id: log,
                partition,
                files: Rc::new(RefCell::new(files)),
            });
            let open = OpenLog {
                log,
                topic_partition: partition,
                config,
                leader_epoch,
                recovered: *recovered,
            };
            state.step(Input::Open(Box::new(open)), &[]);
            state.topics.opened(partition, log);
            if is_internal(&topic.name) {
                state.begin_load(partition, log);
            }
        });
        Ok(report)
    }

    /// Tells what recovery did with a log, in the broker's log and in the counters.
    fn report_recovered(
        &self,
        partition: TopicPartition,
        topic: &str,
        unproven: bool,
        recovered: &RecoveredLog,
    ) -> Recovered {
        let report = Recovered {
            logs: 1,
            scanned_bytes: recovered.scanned_bytes,
            torn_tails: u64::from(recovered.torn_tail_at.is_some()),
            damaged: recovered.damaged.len() as u64,
            unproven: u64::from(unproven),
        };
        let metrics = self.metrics();
        metrics.recovery_scanned_bytes.add(report.scanned_bytes);
        metrics.recovery_torn_tails.add(report.torn_tails);
        metrics.recovery_damaged_ranges.add(report.damaged);
        if unproven {
            metrics.partitions_unproven.add(1);
            tracing::error!(
                %partition, %topic,
                from = recovered.log_start_offset.0, to = recovered.log_end_offset.0,
                "recovered without its ledger: what holds is kept; how far it had been durable is not known"
            );
        }
        match recovered.torn_tail_at {
            Some(at) if unproven => {
                tracing::error!(%partition, %topic, offset = at.0, "cut what did not hold; without a ledger it is not known whether it had been acknowledged");
            }
            Some(at) => {
                tracing::info!(%partition, %topic, offset = at.0, "cut a torn tail that was never acknowledged");
            }
            None => {}
        }
        for removed in &recovered.removed {
            tracing::warn!(
                %partition, %topic, segment = removed.0.0,
                "removed a segment that lay behind the cut"
            );
        }
        report
    }

    /// Says which files and offsets recovery found that are kept and not served.
    pub(super) fn report_unserved(
        &self,
        partition: TopicPartition,
        topic: Option<&str>,
        recovered: &RecoveredLog,
    ) {
        for stranger in &recovered.set_aside {
            tracing::error!(
                %partition, topic,
                file = %segment_path(&self.paths.log(partition), stranger.0, SegmentPart::Log).display(),
                "this file does not continue the log, whatever its name says; it was renamed to *.aside and is not served"
            );
        }
        for range in &recovered.damaged {
            tracing::error!(
                %partition, topic, from = range.from.0, to = range.to.0,
                "damaged offsets: kept on disk, not served"
            );
        }
    }

    /// Moves a deleted log's folder out of the way; it is removed by [`Shard::empty_trash`].
    pub(super) async fn move_to_trash(&self, folder: PathBuf) {
        let Some(name) = folder.file_name() else {
            return;
        };
        let stamp = self.state.borrow().now.wall.0;
        let target = self
            .paths
            .trash()
            .join(format!("{stamp}-{}", name.to_string_lossy()));
        let (from, to) = (folder.clone(), target.clone());
        let moved = glommio::executor()
            .spawn_blocking(move || std::fs::rename(from, to))
            .await;
        if let Err(error) = moved {
            tracing::warn!(path = %folder.display(), %error, "a deleted log could not be moved to the trash");
            return;
        }
        if let Err(fault) = sync_folder(&self.paths.logs()).await {
            tracing::warn!(%fault, "the folder of logs could not be synced");
        }
        self.trash.borrow_mut().push((Instant::now(), target));
    }

    /// Removes what has been in the trash for long enough, which on a full disk is no time at all.
    pub(super) async fn empty_trash(&self) {
        let delay = self.state.borrow().machine.trash_delay();
        let due: Vec<PathBuf> = (self.trash.borrow_mut())
            .extract_if(.., |(since, _)| since.elapsed() >= delay)
            .map(|(_, path)| path)
            .collect();
        for path in due {
            let target = path.clone();
            let removed = glommio::executor()
                .spawn_blocking(move || std::fs::remove_dir_all(target))
                .await;
            if let Err(error) = removed {
                tracing::warn!(path = %path.display(), %error, "the trash could not be emptied");
            }
        }
    }
}
