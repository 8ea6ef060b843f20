//! Properties of the assignors over random groups, and the shares that Kafka's own documentation gives.

use super::*;
use crate::protocol::random::Random;

const ALL: [Assignor; 3] = [
    Assignor::Range,
    Assignor::RoundRobin,
    Assignor::CooperativeSticky,
];

fn member(id: &str, topics: &[&str]) -> Candidate {
    Candidate {
        member_id: id.into(),
        instance: None,
        topics: topics.iter().map(|topic| (*topic).into()).collect(),
        owned: BTreeSet::new(),
        generation: -1,
    }
}

fn sizes(topics: &[(&str, usize)]) -> Sizes {
    topics
        .iter()
        .map(|(topic, size)| ((*topic).into(), *size))
        .collect()
}

fn text(shares: &Shares) -> String {
    let share = |(member, share): (&Arc<str>, &BTreeSet<NamedPartition>)| {
        let share: Vec<String> = share.iter().map(ToString::to_string).collect();
        format!("{member}: {}", share.join(" "))
    };
    let lines: Vec<String> = shares.iter().map(share).collect();
    lines.join("\n")
}

/// Some topics and members; with `is_uniform` all of these want all of those.
fn random_group(random: &mut Random, is_uniform: bool) -> (Vec<Candidate>, Sizes) {
    let names = ["a", "b", "c", "d"];
    let sizes: Sizes = names
        .iter()
        .map(|name| ((*name).into(), random.below(9) as usize))
        .collect();
    let members = (0..=random.below(7)).map(|index| {
        let wanted = names
            .iter()
            .copied()
            .filter(|_| is_uniform || random.below(2) == 0);
        let mut member = member(&format!("m{index}"), &wanted.collect::<Vec<_>>());
        if random.below(4) == 0 {
            member.instance = Some(format!("s{}", 9 - index).into());
        }
        member
    });
    (members.collect(), sizes)
}

fn assert_complete(members: &[Candidate], sizes: &Sizes, shares: &Shares, context: &str) {
    assert_eq!(shares.len(), members.len(), "{context}");
    let mut given = BTreeSet::new();
    for member in members {
        for partition in &shares[&member.member_id] {
            assert!(member.topics.contains(&partition.topic), "{context}");
            let size = sizes[&partition.topic];
            assert!((partition.partition.0 as usize) < size, "{context}");
            assert!(given.insert(partition.clone()), "{context}: given twice");
        }
    }
    let is_wanted = |topic: &&Arc<str>| members.iter().any(|member| member.topics.contains(*topic));
    let wanted: usize = sizes
        .keys()
        .filter(is_wanted)
        .map(|topic| sizes[topic])
        .sum();
    assert_eq!(given.len(), wanted, "{context}: all that anybody wants");
}

/// Nobody has two more than another that could take one of them.
fn assert_balanced(members: &[Candidate], shares: &Shares, context: &str) {
    for one in members {
        for other in members {
            let (more, less) = (&shares[&one.member_id], &shares[&other.member_id]);
            let could = more
                .iter()
                .any(|partition| other.topics.contains(&partition.topic));
            assert!(!could || more.len() <= less.len() + 1, "{context}");
        }
    }
}

/// The next generation of a group: some leave, some come, topics grow and shrink, the others have what they had.
fn next_generation(
    random: &mut Random,
    members: &mut Vec<Candidate>,
    sizes: &mut Sizes,
    shares: &Shares,
    generation: i32,
) {
    for member in members.iter_mut() {
        member.owned = shares[&member.member_id].clone();
        member.generation = generation;
    }
    if random.below(3) == 0 {
        let leaver = random.below(members.len() as u64) as usize;
        members.remove(leaver);
    }
    if members.is_empty() || random.below(3) == 0 {
        members.push(member(&format!("n{generation}"), &["a", "b", "c", "d"]));
    }
    if random.below(4) == 0 {
        sizes.insert("a".into(), random.below(9) as usize);
    }
}

#[test]
fn every_partition_is_given_once_to_somebody_who_wants_it() {
    for seed in 0..2_000 {
        let mut random = Random::new(seed);
        let (members, sizes) = random_group(&mut random, seed % 2 == 0);
        for assignor in ALL {
            let shares = assignor.assign(&members, &sizes);
            let context = format!("seed {seed}, {}: {}", assignor.name(), text(&shares));
            assert_complete(&members, &sizes, &shares, &context);
            if assignor == Assignor::CooperativeSticky
                || (assignor == Assignor::RoundRobin && seed % 2 == 0)
            {
                assert_balanced(&members, &shares, &context);
            }
        }
    }
}

#[test]
fn the_order_in_which_members_are_listed_changes_nothing() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let (members, sizes) = random_group(&mut random, false);
        let mut shuffled = members.clone();
        random.shuffle(&mut shuffled);
        for assignor in ALL {
            let (one, other) = (
                assignor.assign(&members, &sizes),
                assignor.assign(&shuffled, &sizes),
            );
            assert_eq!(one, other, "seed {seed}, {}", assignor.name());
        }
    }
}

#[test]
fn sticky_members_keep_what_balance_lets_them() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let (mut members, mut sizes) = random_group(&mut random, true);
        let mut shares = Assignor::CooperativeSticky.assign(&members, &sizes);
        for generation in 1..8 {
            next_generation(&mut random, &mut members, &mut sizes, &shares, generation);
            shares = Assignor::CooperativeSticky.assign(&members, &sizes);
            let context = format!("seed {seed}, generation {generation}: {}", text(&shares));
            assert_complete(&members, &sizes, &shares, &context);
            assert_balanced(&members, &shares, &context);
            let total: usize = sizes.values().sum();
            let least = total / members.len();
            for member in &members {
                let exists = |partition: &&NamedPartition| {
                    (partition.partition.0 as usize) < sizes[&partition.topic]
                };
                let had = member.owned.iter().filter(exists).count();
                let kept = shares[&member.member_id]
                    .intersection(&member.owned)
                    .count();
                // All that it had, or as much as is its due.
                assert!(kept >= had.min(least), "{context}");
            }
        }
    }
}

#[test]
fn nothing_changes_when_nobody_comes_or_goes() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let (mut members, sizes) = random_group(&mut random, false);
        let first = Assignor::CooperativeSticky.assign(&members, &sizes);
        for member in &mut members {
            member.owned = first[&member.member_id].clone();
            member.generation = 1;
        }
        let mut again = Assignor::CooperativeSticky.assign(&members, &sizes);
        assert_eq!(again, first, "seed {seed}");
        withhold_claimed(&members, &mut again);
        assert_eq!(
            again, first,
            "seed {seed}: nothing is withheld from its owner"
        );
    }
}

#[test]
fn what_another_still_has_is_withheld_until_it_has_let_go() {
    let sizes = sizes(&[("a", 2)]);
    let mut one = member("one", &["a"]);
    one.owned = [NamedPartition::new("a", 0), NamedPartition::new("a", 1)].into();
    one.generation = 1;
    let mut members = [one, member("two", &["a"])];
    let mut shares = Assignor::CooperativeSticky.assign(&members, &sizes);
    withhold_claimed(&members, &mut shares);
    assert_eq!(text(&shares), "one: a-0\ntwo: ");
    members[0].owned = shares["one"].clone();
    let mut shares = Assignor::CooperativeSticky.assign(&members, &sizes);
    withhold_claimed(&members, &mut shares);
    assert_eq!(text(&shares), "one: a-0\ntwo: a-1");
}

#[test]
fn the_later_generation_owns_and_two_of_one_generation_do_not() {
    let sizes = sizes(&[("a", 2)]);
    let mut members = [member("one", &["a"]), member("two", &["a"])];
    for (member, generation) in members.iter_mut().zip([4, 5]) {
        member.owned = [NamedPartition::new("a", 0)].into();
        member.generation = generation;
    }
    let mut shares = Assignor::CooperativeSticky.assign(&members, &sizes);
    withhold_claimed(&members, &mut shares);
    assert_eq!(text(&shares), "one: a-1\ntwo: a-0");
    members[0].generation = 5;
    let mut shares = Assignor::CooperativeSticky.assign(&members, &sizes);
    withhold_claimed(&members, &mut shares);
    assert_eq!(
        text(&shares),
        "one: \ntwo: a-1",
        "both have to let go of it first"
    );
}

#[test]
fn runs_and_turns_as_kafka_has_them() {
    let members = [
        member("c2", &["t", "u"]),
        member("c0", &["t", "u"]),
        member("c1", &["t"]),
    ];
    let sizes = sizes(&[("t", 4), ("u", 3), ("unwanted", 2)]);
    assert_eq!(
        text(&Assignor::Range.assign(&members, &sizes)),
        "c0: t-0 t-1 u-0 u-1\nc1: t-2\nc2: t-3 u-2"
    );
    assert_eq!(
        text(&Assignor::RoundRobin.assign(&members, &sizes)),
        "c0: t-0 t-3 u-1\nc1: t-1\nc2: t-2 u-0 u-2"
    );
}

#[test]
fn static_members_come_first_by_their_names() {
    let mut members = [
        member("a", &["t"]),
        member("b", &["t"]),
        member("c", &["t"]),
    ];
    members[2].instance = Some("2".into());
    members[1].instance = Some("1".into());
    let shares = Assignor::Range.assign(&members, &sizes(&[("t", 4)]));
    assert_eq!(text(&shares), "a: t-3\nb: t-0 t-1\nc: t-2");
}
