//! `tackboard group`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use tackboard_client::{
    Admin, Error, ErrorCode, GroupDescription, GroupMember, NamedPartition, Offset, OffsetQuery,
};

use crate::config::quantity::separated;
use crate::config::similar::nearest;

use super::arguments::{
    ClientArguments, GroupArguments, GroupCommand, ListArguments, NamedGroupArguments,
    ResetArguments, ResetChoice, ResetTo, TopicChoice,
};
use super::failure::Failure;
use super::output::{Columns, counted, note, print, print_json};
use super::topic::client_config;

/// Stands where there is no number.
const NOTHING: &str = "-";

pub(super) fn run(arguments: GroupArguments) -> Result<(), Failure> {
    match arguments.command {
        GroupCommand::List(arguments) => list(&arguments),
        GroupCommand::Describe(arguments) => describe(&arguments),
        GroupCommand::ResetOffsets(arguments) => reset_offsets(&arguments),
        GroupCommand::Delete(arguments) => delete(&arguments),
    }
}

fn connect(arguments: &ClientArguments) -> Result<Admin, Failure> {
    Ok(Admin::connect(&arguments.broker, client_config())?)
}

fn list(arguments: &ListArguments) -> Result<(), Failure> {
    let groups = connect(&arguments.client)?.list_groups()?;
    if arguments.client.json {
        let groups: Vec<Value> = (groups.iter())
            .map(|group| {
                json!({
                    "group": &*group.group,
                    "state": &*group.state,
                    "protocol_type": &*group.protocol_type,
                })
            })
            .collect();
        return print_json(&json!({ "groups": groups }));
    }
    if groups.is_empty() {
        return print(
            "no groups; a first member makes one: tackboard consume TOPIC --group NAME\n",
        );
    }
    let mut columns = Columns::new(&["group", "state", "kind"]);
    for group in &groups {
        columns.row(&[
            group.group.to_string(),
            group.state.to_lowercase(),
            kind(&group.protocol_type).to_owned(),
        ]);
    }
    print(&columns.text(""))
}

/// A group without a kind only keeps offsets.
fn kind(protocol_type: &str) -> &str {
    match protocol_type {
        "" => "offsets only",
        kind => kind,
    }
}

/// How far a group has come in one partition.
#[derive(Debug)]
struct Progress {
    partition: NamedPartition,
    member: Option<String>,
    committed: Option<Offset>,
    /// Where the partition ends, if it exists.
    end: Option<Offset>,
}

impl Progress {
    fn lag(&self) -> Option<u64> {
        let lag = self.end?.0 - self.committed?.0;
        Some(u64::try_from(lag).unwrap_or(0))
    }
}

fn describe(arguments: &NamedGroupArguments) -> Result<(), Failure> {
    let mut admin = connect(&arguments.client)?;
    let group = described(&mut admin, &arguments.group)?;
    let progress = progress(&mut admin, &group)?;
    match arguments.client.json {
        true => print_json(&description_json(&group, &progress)),
        false => print(&description_text(&group, &progress)),
    }
}

/// The group; what is near to its name, where there is none of it.
fn described(admin: &mut Admin, name: &str) -> Result<GroupDescription, Failure> {
    let fault = match admin.describe_group(name) {
        Ok(group) => return Ok(group),
        Err(fault) => fault,
    };
    Err(unknown_group(admin, name, fault))
}

fn unknown_group(admin: &mut Admin, name: &str, fault: Error) -> Failure {
    let code = ErrorCode::GroupIdNotFound;
    if fault.code() != Some(code) {
        return fault.into();
    }
    // Only a suggestion hangs on it: where the list cannot be had, it is left out.
    let groups = admin.list_groups().unwrap_or_default();
    let names = groups.iter().map(|group| &*group.group);
    let advice = match nearest(name, names) {
        Some(near) => format!("\ndid you mean {near}?"),
        None if groups.is_empty() => String::new(),
        None => "\ngroups that there are: tackboard group list".to_owned(),
    };
    let text = format!("there is no group {name} ({}){advice}", code.name());
    Failure::refused(code, text)
}

/// Everything that the group has committed, and everything that its members have.
fn progress(admin: &mut Admin, group: &GroupDescription) -> Result<Vec<Progress>, Failure> {
    let mut all: BTreeMap<NamedPartition, (Option<String>, Option<Offset>)> = BTreeMap::new();
    for offset in admin.group_offsets(&group.group)? {
        all.entry(offset.partition).or_default().1 = offset.offset;
    }
    for member in &group.members {
        for partition in &member.assignment {
            let entry = all.entry(partition.clone()).or_default();
            entry.0 = Some(label(member, &group.members));
        }
    }
    let partitions: Vec<NamedPartition> = all.keys().cloned().collect();
    let ends = offsets(admin, &partitions, OffsetQuery::Latest)?;
    let progress = all
        .into_iter()
        .map(|(partition, (member, committed))| Progress {
            end: ends.get(&partition).copied(),
            partition,
            member,
            committed,
        });
    Ok(progress.collect())
}

/// The shortest name that tells a member from the others.
fn label(member: &GroupMember, members: &[GroupMember]) -> String {
    if let Some(instance) = &member.instance {
        return instance.to_string();
    }
    let same = members
        .iter()
        .filter(|other| other.client_id == member.client_id);
    match same.count() {
        1 if !member.client_id.is_empty() => member.client_id.to_string(),
        _ => member.member_id.to_string(),
    }
}

/// Where partitions stand; those that don't exist are left out.
fn offsets(
    admin: &mut Admin,
    partitions: &[NamedPartition],
    query: OffsetQuery,
) -> Result<BTreeMap<NamedPartition, Offset>, Failure> {
    let topics: BTreeSet<&str> = partitions.iter().map(|one| &*one.topic).collect();
    if topics.is_empty() {
        return Ok(BTreeMap::new());
    }
    let topics: Vec<&str> = topics.into_iter().collect();
    let cluster = admin.describe_cluster(Some(&topics))?;
    let sizes: BTreeMap<&str, usize> = (cluster.topics.iter())
        .filter(|topic| topic.error.is_none())
        .map(|topic| (&*topic.name, topic.partitions.len()))
        .collect();
    let exists = |one: &&NamedPartition| {
        let size = sizes.get(&*one.topic).copied().unwrap_or(0);
        usize::try_from(one.partition.0).is_ok_and(|index| index < size)
    };
    let known: Vec<&NamedPartition> = partitions.iter().filter(exists).collect();
    let queries: Vec<_> = (known.iter())
        .map(|one| (&*one.topic, one.partition, query))
        .collect();
    let listed = match queries.is_empty() {
        true => Vec::new(),
        false => admin.list_offsets(&queries)?,
    };
    let found = known.into_iter().zip(listed);
    Ok(found
        .filter_map(|(partition, listed)| Some((partition.clone(), listed.offset?)))
        .collect())
}

fn description_text(group: &GroupDescription, progress: &[Progress]) -> String {
    let mut facts = vec![group.state.to_lowercase()];
    if group.generation >= 0 {
        facts.push(format!("generation {}", group.generation));
    }
    facts.push(counted(group.members.len() as u64, "member"));
    if !group.protocol.is_empty() {
        facts.push(group.protocol.to_string());
    }
    let mut text = format!("{}   {}\n", group.group, facts.join(", "));
    if progress.is_empty() {
        return text + "  nothing is committed, and nothing is read\n";
    }
    let mut columns = Columns::new(&[
        "topic",
        ">partition",
        "member",
        ">committed",
        ">end",
        ">lag",
    ]);
    for one in progress {
        columns.row(&[
            one.partition.topic.to_string(),
            one.partition.partition.to_string(),
            one.member.clone().unwrap_or_else(|| NOTHING.to_owned()),
            shown(one.committed.map(|offset| offset.0.unsigned_abs())),
            shown(one.end.map(|offset| offset.0.unsigned_abs())),
            shown(one.lag()),
        ]);
    }
    let total = progress.iter().filter_map(Progress::lag).sum();
    let empty = String::new;
    columns.row(&[
        empty(),
        empty(),
        empty(),
        empty(),
        "total".to_owned(),
        separated(total),
    ]);
    text += &columns.text("  ");
    let idle = group
        .members
        .iter()
        .filter(|member| member.assignment.is_empty());
    for member in idle.filter(|_| &*group.state == "Stable") {
        let label = label(member, &group.members);
        text += &format!("  {label} has no partition\n");
    }
    text
}

fn shown(number: Option<u64>) -> String {
    number.map_or_else(|| NOTHING.to_owned(), separated)
}

fn description_json(group: &GroupDescription, progress: &[Progress]) -> Value {
    let members: Vec<Value> = (group.members.iter())
        .map(|member| {
            json!({
                "member_id": &*member.member_id,
                "instance": member.instance.as_deref(),
                "client_id": &*member.client_id,
                "client_host": &*member.client_host,
                "topics": member.topics.iter().map(|topic| &**topic).collect::<Vec<_>>(),
                "assignment": member.assignment.iter().map(partition_json).collect::<Vec<_>>(),
            })
        })
        .collect();
    let partitions: Vec<Value> = (progress.iter())
        .map(|one| {
            json!({
                "topic": &*one.partition.topic,
                "partition": one.partition.partition.0,
                "member": one.member,
                "committed": one.committed.map(|offset| offset.0),
                "end": one.end.map(|offset| offset.0),
                "lag": one.lag(),
            })
        })
        .collect();
    json!({
        "group": &*group.group,
        "state": &*group.state,
        "generation": group.generation,
        "protocol_type": &*group.protocol_type,
        "protocol": &*group.protocol,
        "members": members,
        "partitions": partitions,
        "lag": progress.iter().filter_map(Progress::lag).sum::<u64>(),
    })
}

fn partition_json(partition: &NamedPartition) -> Value {
    json!({ "topic": &*partition.topic, "partition": partition.partition.0 })
}

fn delete(arguments: &NamedGroupArguments) -> Result<(), Failure> {
    let mut admin = connect(&arguments.client)?;
    let name = &arguments.group;
    match admin.delete_group(name) {
        Ok(()) if arguments.client.json => print_json(&json!({ "group": name, "deleted": true })),
        Ok(()) => print(&format!("deleted {name} with all that it had committed\n")),
        Err(fault) if fault.code() == Some(ErrorCode::NonEmptyGroup) => {
            Err(has_members(&mut admin, name, ErrorCode::NonEmptyGroup))
        }
        Err(fault) => Err(unknown_group(&mut admin, name, fault)),
    }
}

fn has_members(admin: &mut Admin, name: &str, code: ErrorCode) -> Failure {
    let members = admin.describe_group(name).map(|group| group.members.len());
    let members = counted(members.unwrap_or(1) as u64, "member");
    let text = format!(
        "group {name} has {members}, nothing was changed ({})\nstop them first; who they are: tackboard group describe {name}",
        code.name()
    );
    Failure::refused(code, text)
}

/// What becomes of one partition's offset.
#[derive(Debug, PartialEq, Eq)]
struct Reset {
    partition: NamedPartition,
    before: Option<Offset>,
    after: Offset,
}

/// What a partition holds.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    earliest: Offset,
    end: Offset,
    /// The first event at or after the time asked for.
    at_time: Option<Offset>,
}

fn reset_offsets(arguments: &ResetArguments) -> Result<(), Failure> {
    let mut admin = connect(&arguments.client)?;
    let name = &arguments.group;
    match admin.describe_group(name) {
        Ok(group) if !group.members.is_empty() => {
            return Err(has_members(&mut admin, name, ErrorCode::NonEmptyGroup));
        }
        // One that doesn't exist is made.
        Err(fault) if fault.code() != Some(ErrorCode::GroupIdNotFound) => return Err(fault.into()),
        _ => {}
    }
    let committed: BTreeMap<NamedPartition, Offset> = (admin.group_offsets(name)?.into_iter())
        .filter_map(|one| Some((one.partition, one.offset?)))
        .collect();
    let partitions = chosen(&mut admin, arguments, &committed)?;
    let earliest = offsets(&mut admin, &partitions, OffsetQuery::Earliest)?;
    let ends = offsets(&mut admin, &partitions, OffsetQuery::Latest)?;
    let at_time = match arguments.to.time() {
        Some(time) => offsets(&mut admin, &partitions, OffsetQuery::At(time))?,
        None => BTreeMap::new(),
    };
    let mut resets = Vec::with_capacity(partitions.len());
    for partition in partitions {
        let (Some(earliest), Some(end)) = (earliest.get(&partition), ends.get(&partition)) else {
            note(&format!(
                "{partition} does not exist any more; left as it is"
            ));
            continue;
        };
        let bounds = Bounds {
            earliest: *earliest,
            end: *end,
            at_time: at_time.get(&partition).copied(),
        };
        let before = committed.get(&partition).copied();
        let after = target(&arguments.to, before, bounds).ok_or_else(|| {
            Failure::failed(format!(
                "group {name} has committed nothing for {partition}, so there is nothing to shift\n\
                 set it first: --to-earliest, --to-latest, --to-offset or --to-time"
            ))
        })?;
        resets.push(Reset {
            partition,
            before,
            after,
        });
    }
    if arguments.execute {
        let offsets: Vec<_> = (resets.iter())
            .map(|reset| (reset.partition.clone(), reset.after))
            .collect();
        let set = admin.set_group_offsets(name, &offsets);
        set.map_err(|fault| match fault.code() {
            // A member came meanwhile.
            Some(code @ ErrorCode::UnknownMemberId) => has_members(&mut admin, name, code),
            _ => fault.into(),
        })?;
    }
    match arguments.client.json {
        true => print_json(&resets_json(name, &resets, arguments.execute)),
        false => print(&resets_text(name, &resets, arguments.execute)),
    }
}

/// The partitions that the command is about.
fn chosen(
    admin: &mut Admin,
    arguments: &ResetArguments,
    committed: &BTreeMap<NamedPartition, Offset>,
) -> Result<Vec<NamedPartition>, Failure> {
    if arguments.topics.all_topics {
        if committed.is_empty() {
            return Err(Failure::failed(format!(
                "group {} has committed nothing\nname the topics: --topic TOPIC",
                arguments.group
            )));
        }
        return Ok(committed.keys().cloned().collect());
    }
    let mut partitions = BTreeSet::new();
    for TopicChoice {
        topic,
        partitions: wanted,
    } in &arguments.topics.topic
    {
        let count = admin.describe_topic(topic)?.partitions.len();
        let name: Arc<str> = Arc::from(topic.as_str());
        let all = 0..i32::try_from(count).unwrap_or(i32::MAX);
        if let Some(absent) = wanted.iter().find(|wanted| !all.contains(wanted)) {
            return Err(Failure::Usage(format!(
                "topic {topic} has {}, numbered from 0; there is no partition {absent}",
                counted(count as u64, "partition")
            )));
        }
        let wanted: Vec<i32> = match wanted.is_empty() {
            true => all.collect(),
            false => wanted.clone(),
        };
        partitions.extend(
            wanted
                .into_iter()
                .map(|index| NamedPartition::new(name.clone(), index)),
        );
    }
    Ok(partitions.into_iter().collect())
}

/// Where the partition is to be read on, within what it holds; `None`: there is nothing to shift.
fn target(to: &ResetTo, before: Option<Offset>, bounds: Bounds) -> Option<Offset> {
    let within = |offset: i64| Offset(offset.clamp(bounds.earliest.0, bounds.end.0));
    Some(match to.choice() {
        ResetChoice::Earliest => bounds.earliest,
        ResetChoice::Latest => bounds.end,
        ResetChoice::Offset(offset) => within(offset.0),
        ResetChoice::Time(_) => bounds.at_time.unwrap_or(bounds.end),
        ResetChoice::Shift(by) => within(before?.0.saturating_add(by)),
    })
}

fn resets_text(group: &str, resets: &[Reset], is_done: bool) -> String {
    let mut columns = Columns::new(&["topic", ">partition", ">committed", ">new"]);
    for reset in resets {
        columns.row(&[
            reset.partition.topic.to_string(),
            reset.partition.partition.to_string(),
            shown(reset.before.map(|offset| offset.0.unsigned_abs())),
            separated(reset.after.0.unsigned_abs()),
        ]);
    }
    let table = columns.text("  ");
    match is_done {
        true => format!("{group}   reset\n{table}"),
        false => {
            format!("{group}   nothing was changed; this would be:\n{table}do it: add --execute\n")
        }
    }
}

fn resets_json(group: &str, resets: &[Reset], is_done: bool) -> Value {
    let partitions: Vec<Value> = (resets.iter())
        .map(|reset| {
            json!({
                "topic": &*reset.partition.topic,
                "partition": reset.partition.partition.0,
                "committed": reset.before.map(|offset| offset.0),
                "new": reset.after.0,
            })
        })
        .collect();
    json!({ "group": group, "executed": is_done, "partitions": partitions })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::arguments::ResetTo;
    use tackboard_client::TimestampMs;

    fn progress(partition: i32, committed: Option<i64>, end: Option<i64>) -> Progress {
        Progress {
            partition: NamedPartition::new("flights", partition),
            member: (partition == 0).then(|| "reader-1".to_owned()),
            committed: committed.map(Offset),
            end: end.map(Offset),
        }
    }

    #[test]
    fn lag_is_told_where_it_is_known() {
        let group = GroupDescription {
            group: "planner".into(),
            state: "Empty".into(),
            generation: 3,
            protocol_type: "consumer".into(),
            protocol: "".into(),
            members: Vec::new(),
        };
        let all = [
            progress(0, Some(56_096), Some(56_214)),
            progress(1, None, Some(7)),
            progress(2, Some(5), None),
        ];
        assert_eq!(
            description_text(&group, &all),
            "planner   empty, generation 3, 0 members\n\
             \x20 topic    partition  member    committed     end  lag\n\
             \x20 flights          0  reader-1     56,096  56,214  118\n\
             \x20 flights          1  -                 -       7    -\n\
             \x20 flights          2  -                 5       -    -\n\
             \x20                                           total  118\n"
        );
    }

    #[test]
    fn targets_keep_within_what_there_is() {
        let bounds = Bounds {
            earliest: Offset(10),
            end: Offset(90),
            at_time: Some(Offset(40)),
        };
        let to = |to: ResetTo, before: Option<i64>| {
            target(&to, before.map(Offset), bounds).map(|offset| offset.0)
        };
        let none = ResetTo::default();
        let offset = |offset| ResetTo {
            to_offset: Some(offset),
            ..none.clone()
        };
        let shift = |by| ResetTo {
            shift_by: Some(by),
            ..none.clone()
        };
        assert_eq!(to(offset(3), None), Some(10));
        assert_eq!(to(offset(50), None), Some(50));
        assert_eq!(to(offset(91), None), Some(90));
        assert_eq!(to(shift(-30), Some(50)), Some(20));
        assert_eq!(to(shift(i64::MIN), Some(50)), Some(10));
        assert_eq!(to(shift(5), None), None);
        let time = ResetTo {
            to_time: Some(TimestampMs(1)),
            ..none.clone()
        };
        assert_eq!(to(time, None), Some(40));
    }
}
