//! Kafka's wire.
//!
//! Owns: which version of each API is spoken, bounds that Kafka's brokers don't tell, correlation ids of 31 bits.
//! Requests are written by `requests`, answers read by `answers`, codes translated by `codes`.
//!
//! Source: KIP-35 (ApiVersions), KIP-74 (the first batch of a fetch comes whole), KIP-896 (what Kafka 4 no longer speaks).

mod answers;
mod codes;
mod requests;

use std::collections::VecDeque;

use bytes::Bytes;
use tackboard_schema::kafka::{ApiKey, Str, Versions};
use tackboard_schema::{BrokerId, CoreId, CorrelationId, ErrorCode};

pub(super) use answers::{
    Produced, read_fetched, read_init_producer, read_list_offsets, read_metadata, read_produced,
};
#[cfg(feature = "blocking")]
pub(super) use answers::{read_create_topic, read_delete_topic};

use super::{Pipelining, Question, Unaskable};
use crate::error::Result;
use crate::protocol::frames::KafkaFrame;
use crate::protocol::messages::{Context, Welcome};

/// The most requests before their answers where several are meant: `max.in.flight.requests.per.connection` of Kafka's own
/// client. Its brokers work off one at a time, so more would only lie in the socket.
const REQUESTS_IN_FLIGHT_MAX: u32 = 5;

/// Bytes of such requests.
const REQUEST_BYTES_IN_FLIGHT_MAX: u64 = 16 << 20;

/// The longest frame that a broker takes or is asked for: half of `socket.request.max.bytes`.
const FRAME_BYTES_MAX: u32 = 50 << 20;

/// The longest batch that a broker takes: `message.max.bytes`.
const BATCH_BYTES_MAX: u32 = 1_048_588;

/// Correlation ids have so many values; an id is used again only after that many requests.
const CORRELATION_IDS: u64 = 1 << 31;

/// What is asked, and in which versions. The last is where the definitions end, but for Fetch, which from version 13 on
/// names topics by ids only.
const SPOKEN: &[(ApiKey, Versions)] = &[
    (ApiKey::Produce, Versions { min: 3, max: 11 }),
    (ApiKey::Fetch, Versions { min: 4, max: 12 }),
    (ApiKey::ListOffsets, Versions { min: 1, max: 10 }),
    (ApiKey::Metadata, Versions { min: 4, max: 12 }),
    (ApiKey::CreateTopics, Versions { min: 2, max: 7 }),
    (ApiKey::DeleteTopics, Versions { min: 1, max: 6 }),
    (ApiKey::InitProducerId, Versions { min: 0, max: 4 }),
];

/// The version in which ApiVersions is asked, before anything is known: the one that every broker answers.
const API_VERSIONS_VERSION: i16 = 0;

/// How a connection's requests are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    client_id: Str,
    requests_in_flight_max: u32,
    /// For each API that both sides speak the highest version that they do; empty until the broker has told.
    versions: Vec<(ApiKey, i16)>,
}

impl Wire {
    pub(super) fn new(client_id: &str, pipelining: Pipelining) -> Self {
        Self {
            client_id: client_id.into(),
            requests_in_flight_max: match pipelining {
                Pipelining::One => 1,
                Pipelining::Several => REQUESTS_IN_FLIGHT_MAX,
            },
            versions: Vec::new(),
        }
    }

    pub(super) fn write(
        &self,
        out: &mut VecDeque<Bytes>,
        question: &Question<'_>,
        id: CorrelationId,
    ) -> Result<i16, Unaskable> {
        let version = self.version(question)?;
        // Below 2^31 by the remainder.
        let correlation_id = (id.0 % CORRELATION_IDS) as i32;
        let to = requests::To {
            version,
            correlation_id,
            client_id: &self.client_id,
        };
        requests::write(out, &to, question)?;
        Ok(version)
    }

    fn version(&self, question: &Question<'_>) -> Result<i16, Unaskable> {
        let api = api(question)?;
        if api == ApiKey::ApiVersions {
            return Ok(API_VERSIONS_VERSION);
        }
        let known = self.versions.iter().find(|(known, _)| *known == api);
        known.map(|(_, version)| *version).ok_or_else(|| Unaskable {
            code: ErrorCode::UnsupportedVersion,
            message: format!("the broker speaks {api} in no version that this client does"),
        })
    }

    /// Takes in which versions the broker speaks. Its bounds are not told: they are taken to be Kafka's defaults.
    pub(super) fn read_hello(&mut self, context: &Context, frame: &KafkaFrame) -> Result<Welcome> {
        let offered = answers::read_api_versions(context, frame)?;
        self.versions = SPOKEN
            .iter()
            .filter_map(|(api, ours)| Some((*api, highest_common(*ours, &offered, *api)?)))
            .collect();
        Ok(Welcome {
            cluster_id: String::new(),
            broker_id: BrokerId(-1),
            broker_version: String::new(),
            core_count: 0,
            core: CoreId(0),
            frame_bytes_max: FRAME_BYTES_MAX,
            batch_bytes_max: BATCH_BYTES_MAX,
            requests_in_flight_max: self.requests_in_flight_max,
            request_bytes_in_flight_max: REQUEST_BYTES_IN_FLIGHT_MAX,
        })
    }
}

fn highest_common(ours: Versions, offered: &[(i16, Versions)], api: ApiKey) -> Option<i16> {
    let (_, theirs) = offered.iter().find(|(key, _)| *key == api.code())?;
    let highest = ours.max.min(theirs.max);
    (highest >= ours.min && highest >= theirs.min).then_some(highest)
}

/// Which of Kafka's APIs a question is.
fn api(question: &Question<'_>) -> Result<ApiKey, Unaskable> {
    Ok(match question {
        Question::Hello { .. } => ApiKey::ApiVersions,
        Question::Metadata { .. } => ApiKey::Metadata,
        Question::InitProducer => ApiKey::InitProducerId,
        Question::Produce { .. } => ApiKey::Produce,
        Question::Fetch { .. } => ApiKey::Fetch,
        Question::ListOffsets { .. } => ApiKey::ListOffsets,
        #[cfg(feature = "blocking")]
        Question::CreateTopic(_) => ApiKey::CreateTopics,
        #[cfg(feature = "blocking")]
        Question::DeleteTopic(_) => ApiKey::DeleteTopics,
        Question::Group(_) => {
            return Err(Unaskable {
                code: ErrorCode::UnsupportedVersion,
                message: "groups are joined and looked after through our own protocol".into(),
            });
        }
        #[cfg(feature = "blocking")]
        Question::CreatePartitions(..) | Question::AlterTopic(..) => {
            return Err(Unaskable {
                code: ErrorCode::UnsupportedVersion,
                message: "topics are altered through our own protocol".into(),
            });
        }
        #[cfg(feature = "blocking")]
        Question::DescribeTopic(_) => {
            return Err(Unaskable {
                code: ErrorCode::UnsupportedVersion,
                message: "Kafka's protocol has no request that describes a topic as ours does"
                    .into(),
            });
        }
    })
}

/// The request that an answer with this id belongs to: the last one before `next` whose id has these lower bits.
pub(super) fn request_id(answered: CorrelationId, next: u64) -> CorrelationId {
    let lap = next - next % CORRELATION_IDS;
    let id = lap + answered.0;
    CorrelationId(if id < next {
        id
    } else {
        id.wrapping_sub(CORRELATION_IDS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_have_begun_anew_find_their_requests() {
        let lap = CORRELATION_IDS;
        for (next, id) in [
            (2, 1),
            (lap, lap - 1),
            (lap + 1, lap),
            (lap + 3, lap - 2),
            (5 * lap + 7, 5 * lap + 6),
        ] {
            let answered = CorrelationId(id % lap);
            assert_eq!(request_id(answered, next), CorrelationId(id), "{next}");
        }
    }

    #[test]
    fn the_highest_version_that_both_speak() {
        let ours = Versions { min: 3, max: 11 };
        let offered = |min, max| [(0, Versions { min, max })];
        for (min, max, expected) in [
            (0, 13, Some(11)),
            (3, 9, Some(9)),
            (11, 11, Some(11)),
            (12, 13, None),
            (0, 2, None),
            (5, 4, None),
        ] {
            let found = highest_common(ours, &offered(min, max), ApiKey::Produce);
            assert_eq!(found, expected, "{min}-{max}");
        }
        assert_eq!(highest_common(ours, &[], ApiKey::Produce), None);
    }

    #[test]
    fn what_is_spoken_is_defined() {
        for (api, ours) in SPOKEN {
            assert!(api.row().served.contains(ours.min) && api.row().served.contains(ours.max));
        }
    }
}
