// Made from schema/kafka/messages/init_producer_id.kmsg by schema/regenerate. Changes go there.

use crate::kafka::wire::prelude::*;

/// Request: InitProducerId, versions 0-4.
///
/// Gives a producer its id and epoch.
///
/// 3: a producer that has them asks for the next epoch (KIP-360).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitProducerIdRequest {
    /// The transaction's name; null without transactions.
    pub transactional_id: Option<Str>,
    /// How long a transaction may last.
    pub transaction_timeout_ms: i32,
    /// The id that it has; -1 for none. Versions 3+. Default: -1.
    pub producer_id: i64,
    /// The epoch that it has; -1 for none. Versions 3+. Default: -1.
    pub producer_epoch: i16,
}

impl Default for InitProducerIdRequest {
    fn default() -> Self {
        Self {
            transactional_id: Some(Str::default()),
            transaction_timeout_ms: 0,
            producer_id: -1,
            producer_epoch: -1,
        }
    }
}

impl Value for InitProducerIdRequest {
    fn bytes_min(form: Form) -> usize {
        let version = form.version;
        let mut bytes = form.tags_bytes_min();
        bytes += <Option<Str>>::bytes_min(form);
        bytes += <i32>::bytes_min(form);
        if version >= 3 {
            bytes += <i64>::bytes_min(form);
        }
        if version >= 3 {
            bytes += <i16>::bytes_min(form);
        }
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let version = from.form().version;
        let read = Self {
            transactional_id: from.field("transactional_id")?,
            transaction_timeout_ms: from.field("transaction_timeout_ms")?,
            producer_id: if version >= 3 { from.field("producer_id")? } else { -1 },
            producer_epoch: if version >= 3 { from.field("producer_epoch")? } else { -1 },
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        let version = to.form().version;
        to.field("transactional_id", &self.transactional_id)?;
        to.field("transaction_timeout_ms", &self.transaction_timeout_ms)?;
        if version >= 3 {
            to.field("producer_id", &self.producer_id)?;
        }
        if version >= 3 {
            to.field("producer_epoch", &self.producer_epoch)?;
        }
        to.no_tags();
        Ok(())
    }
}

impl Message for InitProducerIdRequest {
    const API: ApiKey = ApiKey::InitProducerId;
}

/// Response: InitProducerId, versions 0-4.
///
/// Gives a producer its id and epoch.
///
/// 3: a producer that has them asks for the next epoch (KIP-360).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitProducerIdResponse {
    /// How long the client was held back for its quota.
    pub throttle_time_ms: i32,
    /// Whether it got any.
    pub error_code: i16,
    /// Its id. Default: -1.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
}

impl Default for InitProducerIdResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: 0,
            error_code: 0,
            producer_id: -1,
            producer_epoch: 0,
        }
    }
}

impl Value for InitProducerIdResponse {
    fn bytes_min(form: Form) -> usize {
        let mut bytes = form.tags_bytes_min();
        bytes += <i32>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes += <i64>::bytes_min(form);
        bytes += <i16>::bytes_min(form);
        bytes
    }

    fn read(from: &mut Reader) -> Result<Self, DecodeError> {
        let read = Self {
            throttle_time_ms: from.field("throttle_time_ms")?,
            error_code: from.field("error_code")?,
            producer_id: from.field("producer_id")?,
            producer_epoch: from.field("producer_epoch")?,
        };
        from.skip_tags()?;
        Ok(read)
    }

    fn write(&self, to: &mut Writer<'_>) -> Result<(), EncodeError> {
        to.field("throttle_time_ms", &self.throttle_time_ms)?;
        to.field("error_code", &self.error_code)?;
        to.field("producer_id", &self.producer_id)?;
        to.field("producer_epoch", &self.producer_epoch)?;
        to.no_tags();
        Ok(())
    }
}

impl Message for InitProducerIdResponse {
    const API: ApiKey = ApiKey::InitProducerId;
}

impl Request for InitProducerIdRequest {
    type Response = InitProducerIdResponse;
}

impl Response for InitProducerIdResponse {}
