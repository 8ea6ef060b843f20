//! Requests that change topics: one change of the metadata each, and one answer when all of them are decided.
//!
//! What a change is, and how it is answered, is for the file of its API to say; here it is proposed, or tried on a copy of
//! the image where a client only wants to know what would come of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use tackboard_logic::metadata::{
    Command, Machine, MetadataRefusal, Outcome, PARTITIONS_MAX, Topic,
};
use tackboard_schema::{
    CorrelationId, ErrorCode, TopicId,
    kafka::{ApiKey, Str},
};

use super::{
    alter_configs,
    answers::{Answers, Form},
    codes::kafka_code,
    create_partitions, create_topics, delete_topics,
    handlers::Call,
};
use crate::{
    bridge::ProposalResult,
    config::Config,
    native::{connection::Connection, handlers::ENTRIES_MAX},
    shard::{
        control::{TRIAL_PARTITIONS_MAX, TRIALS_MAX},
        placed::short,
        request::Failure,
        state::State,
    },
};

/// Bytes of a message in an answer. What it is about may be as long as a request, and old versions have strings of 32,767
/// bytes.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// One change that a request asks for.
pub(super) struct Change {
    /// The topic's name, or what else is to change.
    pub name: Option<Str>,
    /// What kind of thing has that name, where the request says so.
    pub resource_type: i8,
    /// The topic's id: as asked, or as decided.
    pub topic_id: TopicId,
    /// The topic as it is then, if it is still there.
    pub topic: Option<Arc<Topic>>,
    /// Why it was not made.
    pub refusal: Option<MetadataRefusal>,
}

impl Change {
    /// A change to what has that name.
    pub fn of(name: Str) -> Self {
        Change {
            name: Some(name),
            resource_type: 0,
            topic_id: TopicId([0; 16]),
            topic: None,
            refusal: None,
        }
    }

    /// How it went, for the answer.
    pub fn told(&self) -> (i16, Option<Str>) {
        match &self.refusal {
            Some(MetadataRefusal { code, message }) => {
                let told = &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)];
                (kafka_code(*code), Some(told.into()))
            }
            None => (0, None),
        }
    }
}

/// A refusal in a handler's own words.
pub(super) fn refused<T>(code: ErrorCode, message: &str) -> Result<T, MetadataRefusal> {
    Err(MetadataRefusal {
        code,
        message: message.to_owned(),
    })
}

/// The changes of one request, in its order.
pub struct Changes {
    changes: Vec<Change>,
    /// Those that are not decided yet.
    waiting: usize,
}

/// Proposes what a request asks for, or tries it. What has no command is refused already.
pub(super) fn propose(
    call: Call<'_>,
    asked: Vec<(Change, Result<Command, MetadataRefusal>)>,
    validate_only: bool,
) {
    let Call {
        state,
        connection,
        answers,
        number,
        ..
    } = call;
    connection.take_in(Default::default());
    let repeated = repeated(&asked);
    let mut changes = Vec::with_capacity(asked.len());
    let mut commands = Vec::new();
    for (index, (mut change, command)) in asked.into_iter().enumerate() {
        let too_many = refused(
            ErrorCode::PolicyViolation,
            "more changes than one request may ask for",
        );
        let command = if index >= ENTRIES_MAX {
            too_many
        } else if repeated.contains(&index) {
            refused(ErrorCode::InvalidRequest, "named more than once")
        } else {
            command.and_then(|command| named_in_short(&change).and(Ok(command)))
        };
        match command {
            Ok(command) => commands.push((index, command)),
            Err(refusal) => change.refusal = Some(refusal),
        }
        changes.push(change);
    }
    if validate_only {
        try_out(state, &mut changes, std::mem::take(&mut commands));
    }
    let changes = Changes {
        changes,
        waiting: commands.len(),
    };
    answers.with(number, |asked| asked.form = Form::Changes(changes));
    for (index, command) in commands {
        state.change_for_kafka(connection, number, index, command);
    }
    answer_when_decided(&state.config, answers, connection, number);
}

/// A name that no topic can have is not put before anybody.
fn named_in_short(change: &Change) -> Result<(), MetadataRefusal> {
    match change.name.as_deref().map(short) {
        Some(Err(Failure { code, message, .. })) => Err(MetadataRefusal { code, message }),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// Those whose subject the request names more than once: what would come of them depends on their order, so none is made.
fn repeated<T>(asked: &[(Change, T)]) -> BTreeSet<usize> {
    let mut named: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, (change, _)) in asked.iter().enumerate() {
        let subject = (change.resource_type, &change.name, change.topic_id.0);
        named.entry(subject).or_default().push(index);
    }
    let several = named.into_values().filter(|indexes| indexes.len() > 1);
    several.flatten().collect()
}

fn try_out(state: &State, changes: &mut [Change], commands: Vec<(usize, Command)>) {
    let mut trial = Machine::on_trial(state.topics.image().clone());
    let mut partitions = 0;
    for (tried, (index, command)) in commands.into_iter().enumerate() {
        let change = &mut changes[index];
        if tried >= TRIALS_MAX {
            let message = format!("more changes than one request may try, {TRIALS_MAX}");
            change.refusal = refused::<()>(ErrorCode::PolicyViolation, &message).err();
            continue;
        }
        partitions += partitions_of(&command);
        if partitions > TRIAL_PARTITIONS_MAX {
            let message =
                format!("more partitions than one request may try, {TRIAL_PARTITIONS_MAX}");
            change.refusal = refused::<()>(ErrorCode::PolicyViolation, &message).err();
            continue;
        }
        let version = trial.image().version + 1;
        let admitted = state.admit_change(&command);
        match admitted.and_then(|()| trial.apply(version, command)) {
            Ok(outcome) => change.topic = topic_of(&outcome, &trial.image()),
            Err(refusal) => change.refusal = Some(refusal),
        }
    }
}

/// How many partitions a change asks for, if as many may be asked for at all.
fn partitions_of(command: &Command) -> usize {
    let asked = match command {
        Command::CreateTopic(create) => create.partitions,
        Command::CreatePartitions { count, .. } => *count,
        _ => 0,
    };
    match (0..=PARTITIONS_MAX).contains(&asked) {
        true => asked as usize,
        // Refused without being placed.
        false => 0,
    }
}

/// The topic that an outcome is about, as an image has it.
fn topic_of(outcome: &Outcome, image: &tackboard_logic::metadata::Image) -> Option<Arc<Topic>> {
    image.topic_by_id(topic_id_of(outcome)?).cloned()
}

fn topic_id_of(outcome: &Outcome) -> Option<TopicId> {
    match outcome {
        Outcome::TopicCreated { topic_id, .. }
        | Outcome::TopicDeleted { topic_id, .. }
        | Outcome::PartitionsCreated { topic_id, .. }
        | Outcome::TopicAltered { topic_id } => Some(*topic_id),
        Outcome::BrokerRegistered { .. } | Outcome::ProducerIds { .. } => None,
    }
}

/// One of the changes of a request was decided.
pub fn decided(
    state: &State,
    connection: &Rc<Connection>,
    number: CorrelationId,
    index: usize,
    result: ProposalResult,
) {
    let Some(answers) = connection.kafka() else {
        return;
    };
    answers.with(number, |asked| {
        let Form::Changes(changes) = &mut asked.form else {
            return;
        };
        changes.waiting -= 1;
        let change = &mut changes.changes[index];
        match result {
            Ok(decided) => {
                change.topic_id = topic_id_of(&decided.outcome).unwrap_or(change.topic_id);
                change.topic = topic_of(&decided.outcome, state.topics.image());
            }
            Err(refusal) => change.refusal = Some(refusal),
        }
    });
    answer_when_decided(&state.config, answers, connection, number);
}

fn answer_when_decided(
    config: &Config,
    answers: &Answers,
    connection: &Connection,
    number: CorrelationId,
) {
    let decided = answers.with(number, |asked| match &mut asked.form {
        Form::Changes(changes) if changes.waiting == 0 => {
            Some((asked.api, std::mem::take(&mut changes.changes)))
        }
        _ => None,
    });
    let Some(Some((api, changes))) = decided else {
        return;
    };
    match api {
        ApiKey::CreateTopics => {
            answers.respond(connection, number, &create_topics::answer(config, changes));
        }
        ApiKey::DeleteTopics => {
            answers.respond(connection, number, &delete_topics::answer(changes));
        }
        ApiKey::CreatePartitions => {
            answers.respond(connection, number, &create_partitions::answer(changes));
        }
        ApiKey::AlterConfigs => {
            answers.respond(connection, number, &alter_configs::answer(changes));
        }
        ApiKey::IncrementalAlterConfigs => {
            answers.respond(
                connection,
                number,
                &alter_configs::answer_incremental(changes),
            );
        }
        other => unreachable!("{other} changes no topic"),
    }
}
