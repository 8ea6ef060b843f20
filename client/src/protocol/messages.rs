//! What an answer is about, and what it turns into when it is a refusal or makes no sense.
//!
//! Not here: what stands in requests and answers (`wire`); when to send what.

use std::sync::Arc;

use tackboard_schema::frame::ApiKey;
use tackboard_schema::{BrokerId, CoreId, ErrorCode, PartitionIndex};

use crate::error::{Error, Refusal, Result};

/// What a broker says of itself when a connection begins, and the bounds it holds its clients to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The cluster's id, perhaps empty.
    pub cluster_id: String,
    /// The broker's number.
    pub broker_id: BrokerId,
    /// Its release.
    pub broker_version: String,
    /// How many cores it runs on.
    pub core_count: u16,
    /// The core that serves this connection.
    pub core: CoreId,
    /// Longest frame it takes, in bytes.
    pub frame_bytes_max: u32,
    /// Longest record batch it takes unless a topic says otherwise, in bytes.
    pub batch_bytes_max: u32,
    /// Requests it takes on one connection before their answers.
    pub requests_in_flight_max: u32,
    /// Bytes of such requests.
    pub request_bytes_in_flight_max: u64,
}

/// The name of an API in errors.
pub fn api_name(api: ApiKey) -> &'static str {
    match api {
        ApiKey::Error => "Error",
        ApiKey::Hello => "Hello",
        ApiKey::Metadata => "Metadata",
        ApiKey::CreateTopic => "CreateTopic",
        ApiKey::DeleteTopic => "DeleteTopic",
        ApiKey::DescribeTopic => "DescribeTopic",
        ApiKey::InitProducer => "InitProducer",
        ApiKey::Produce => "Produce",
        ApiKey::Fetch => "Fetch",
        ApiKey::ListOffsets => "ListOffsets",
        ApiKey::FindCoordinator => "FindCoordinator",
        ApiKey::JoinGroup => "JoinGroup",
        ApiKey::SyncGroup => "SyncGroup",
        ApiKey::Heartbeat => "Heartbeat",
        ApiKey::LeaveGroup => "LeaveGroup",
        ApiKey::OffsetCommit => "OffsetCommit",
        ApiKey::OffsetFetch => "OffsetFetch",
        ApiKey::ListGroups => "ListGroups",
        ApiKey::DescribeGroups => "DescribeGroups",
        ApiKey::DeleteGroups => "DeleteGroups",
        ApiKey::DeleteOffsets => "DeleteOffsets",
        ApiKey::CreatePartitions => "CreatePartitions",
        ApiKey::AlterTopic => "AlterTopic",
    }
}

/// The code with this number; one that is not known reads as a fault of the server.
pub fn error_code(number: i16) -> ErrorCode {
    ErrorCode::from_code(number).unwrap_or(ErrorCode::UnknownServerError)
}

/// What an answer is about, for the errors that it may turn into.
#[derive(Clone, Debug)]
pub struct Context {
    /// Which API was called.
    pub api: ApiKey,
    /// Who answered.
    pub address: Arc<str>,
    /// Which topic it is about, if one.
    pub topic: Option<Arc<str>>,
    /// The version of the API in which it was asked; says something only on Kafka's wire.
    pub version: i16,
}

impl Context {
    /// For an API at an address.
    pub fn new(api: ApiKey, address: &Arc<str>) -> Self {
        Self {
            api,
            address: address.clone(),
            topic: None,
            version: 0,
        }
    }

    /// The same, asked in this version.
    #[must_use]
    pub fn version(self, version: i16) -> Self {
        Self { version, ..self }
    }

    /// The same about a topic.
    #[must_use]
    pub fn topic(mut self, topic: &str) -> Self {
        self.topic = Some(topic.into());
        self
    }

    /// `Ok` for code 0, else the refusal.
    pub fn check(&self, code: i16, message: Option<&str>) -> Result<()> {
        match error_code(code) {
            ErrorCode::None => Ok(()),
            code => Err(Error::Refused(self.refusal(None, code, message))),
        }
    }

    /// A refusal in this context.
    pub fn refusal(
        &self,
        partition: Option<PartitionIndex>,
        code: ErrorCode,
        message: Option<&str>,
    ) -> Refusal {
        Refusal {
            api: api_name(self.api),
            address: self.address.clone(),
            topic: self.topic.clone(),
            partition,
            code,
            message: message.unwrap_or_default().into(),
        }
    }

    /// The broker sent something that cannot be.
    pub fn fault(&self, what: impl ToString) -> Error {
        let what = format!(
            "an answer to {} with {}",
            api_name(self.api),
            what.to_string()
        );
        Error::Protocol {
            address: self.address.clone(),
            what: what.into(),
        }
    }
}
