//! A topic that the broker does not have: what was meant perhaps, and what to do.
//!
//! Every command that names a topic ends here, so that all of them say it in the same words.

use tackboard_client::{Admin, Error};

use crate::config::similar::nearest;

use super::arguments::{BROKER_DEFAULT, Command, GroupCommand, TopicCommand};
use super::failure::Failure;
use super::topic::client_config;

/// How a command uses the topic that it names.
pub(super) struct Use {
    brokers: Vec<String>,
    /// Making the topic would let the command go on.
    may_create: bool,
}

impl Use {
    /// Of a command that names a topic which should exist.
    pub(super) fn of(command: &Command) -> Option<Self> {
        let (client, may_create) = match command {
            Command::Produce(arguments) => (&arguments.client, true),
            Command::Consume(arguments) => (&arguments.client, false),
            Command::Topic(arguments) => match &arguments.command {
                TopicCommand::Describe(named) | TopicCommand::Delete(named) => {
                    (&named.client, false)
                }
                TopicCommand::Alter(alter) => (&alter.client, false),
                TopicCommand::Create(_) | TopicCommand::List(_) => return None,
            },
            Command::Group(arguments) => match &arguments.command {
                GroupCommand::ResetOffsets(reset) => (&reset.client, false),
                GroupCommand::List(_) | GroupCommand::Describe(_) | GroupCommand::Delete(_) => {
                    return None;
                }
            },
            Command::Serve(_) | Command::Check(_) | Command::Config(_) => return None,
        };
        Some(Self {
            brokers: client.broker.clone(),
            may_create,
        })
    }

    /// The same failure; one about an unknown topic with what to do about it.
    pub(super) fn explain(&self, failure: Failure) -> Failure {
        let Failure::Client(error) = &failure else {
            return failure;
        };
        let Error::UnknownTopic { topic, address } = &**error else {
            return failure;
        };
        // Only a suggestion hangs on it: where the list cannot be had, it is left out.
        let topics = Admin::connect(&self.brokers, client_config())
            .and_then(|mut admin| admin.list_topics())
            .unwrap_or_default();
        let names: Vec<&str> = topics.iter().map(|topic| &*topic.name).collect();
        let text = format!("{error}{}", self.advice(topic, address, &names));
        Failure::refused(tackboard_client::ErrorCode::UnknownTopicOrPartition, text)
    }

    fn advice(&self, topic: &str, address: &str, names: &[&str]) -> String {
        let broker = match address {
            BROKER_DEFAULT => String::new(),
            _ => format!(" --broker {address}"),
        };
        let mut text = match nearest(topic, names.iter().copied()) {
            Some(near) => format!("\ndid you mean {near}?"),
            None if names.is_empty() => String::new(),
            None => format!("\ntopics that there are: tackboard topic list{broker}"),
        };
        if self.may_create {
            text += &format!("\ncreate it: tackboard topic create {topic}{broker}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_what_is_near_and_offers_to_create_only_where_that_helps() {
        let advice = |may_create, names: &[&str]| {
            let used = Use {
                brokers: Vec::new(),
                may_create,
            };
            used.advice("flihts", "10.0.0.1:7400", names)
        };
        assert_eq!(advice(false, &["flights"]), "\ndid you mean flights?");
        assert_eq!(
            advice(false, &["orders"]),
            "\ntopics that there are: tackboard topic list --broker 10.0.0.1:7400"
        );
        assert_eq!(advice(false, &[]), "");
        assert_eq!(
            advice(true, &[]),
            "\ncreate it: tackboard topic create flihts --broker 10.0.0.1:7400"
        );
    }
}
