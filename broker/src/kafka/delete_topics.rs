//! DeleteTopics: one change of the metadata a topic, one answer for all.

use tackboard_logic::metadata::Command;
use tackboard_schema::{ErrorCode, TopicId, kafka::DeleteTopicsRequest};

use super::{
    answers::Form,
    create_topics::{Change, Changes, answer_when_decided},
    handlers::Call,
};
use crate::native::handlers::ENTRIES_MAX;

pub(super) fn handle(call: Call<'_>, request: DeleteTopicsRequest) {
    let Call {
        state,
        connection,
        answers,
        number,
        ..
    } = call;
    let named = request
        .topic_names
        .into_iter()
        .map(|name| (Some(name), TopicId([0; 16])));
    let topics = request
        .topics
        .into_iter()
        .map(|topic| (topic.name, topic.topic_id));
    let topics: Vec<_> = named.chain(topics).collect();
    let changes = topics
        .iter()
        .enumerate()
        .map(|(index, (name, topic_id))| Change {
            name: name.clone(),
            topic_id: *topic_id,
            refusal: (index >= ENTRIES_MAX).then(|| {
                let message = "more topics than one request may name";
                (ErrorCode::PolicyViolation, message.to_owned())
            }),
            ..Change::default()
        });
    let changes = Changes::new(changes.collect());
    connection.take_in(Default::default());
    answers.with(number, |asked| asked.form = Form::Topics(changes));
    for (index, (name, topic_id)) in topics.into_iter().take(ENTRIES_MAX).enumerate() {
        let command = match name {
            Some(name) => Command::DeleteTopic {
                name: name.to_string(),
            },
            None => Command::DeleteTopicById { topic_id },
        };
        state.delete_topic_for_kafka(connection, number, index, command);
    }
    answer_when_decided(answers, connection, number);
}
