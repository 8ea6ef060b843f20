//! DeleteTopics: one change of the metadata a topic, one answer for all.

use tackboard_schema::{ErrorCode, kafka::DeleteTopicsRequest};

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
    let image = state.topics.image().clone();
    let named = request.topic_names.into_iter().map(|name| Change {
        name: Some(name),
        ..Change::default()
    });
    let by_id = request.topics.into_iter().map(|topic| match topic.name {
        Some(name) => Change {
            name: Some(name),
            ..Change::default()
        },
        None => {
            let found = image.topic_by_id(topic.topic_id);
            let unknown = ErrorCode::UnknownTopicId;
            Change {
                name: found.map(|topic| (*topic.name).into()),
                topic_id: topic.topic_id,
                refusal: (found.is_none()).then(|| (unknown, unknown.text().to_owned())),
                ..Change::default()
            }
        }
    });
    let topics: Vec<_> = named.chain(by_id).take(ENTRIES_MAX).collect();
    let asked: Vec<_> = (topics.iter())
        .map(|change| change.name.clone().filter(|_| change.refusal.is_none()))
        .collect();
    connection.take_in(Default::default());
    answers.with(number, |asked| {
        asked.form = Form::Topics(Changes::new(topics))
    });
    for (index, name) in asked.into_iter().enumerate() {
        if let Some(name) = name {
            state.delete_topic_for_kafka(connection, number, index, &name);
        }
    }
    answer_when_decided(answers, connection, number);
}
