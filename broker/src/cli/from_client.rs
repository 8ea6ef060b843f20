//! `tackboard check --from-client HOST:PORT`, run where clients run: which of the addresses that a broker tells its
//! clients can't be reached from there.
//!
//! A client dials one address and is told others, which the broker can't try for it: a name that only resolves beside the
//! broker, an address behind translation, `localhost`, which is another machine for each of them. So each is dialled
//! from here, and whoever answers must be the broker that named it.

use std::time::Duration;

use tackboard_client::{Admin, ClientConfig, ClusterDescription, Error, Protocol};

use crate::check::{Finding, Level};

use super::topic::client_config;

/// Longest time that one address is dialled.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest time that it has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// An address that clients are told.
struct Told {
    /// Whose it is.
    name: &'static str,
    address: String,
    /// What clients are told is changed with.
    setting: &'static str,
}

/// Dials `address` and everything that is told there.
pub(super) fn run(address: &str) -> Vec<Finding> {
    let (mut admin, protocol) = match connect(address) {
        Ok(connected) => connected,
        Err(error) => {
            let remedy = "start the broker, bind it to an address that this machine reaches (native.bind, kafka.bind), and let the port through what lies between";
            return vec![fault("address", error.to_string(), remedy.to_owned())];
        }
    };
    let cluster_id = admin.broker().cluster_id.clone();
    let spoken = match protocol {
        Protocol::Native => "our protocol",
        Protocol::Kafka => "Kafka's protocol",
    };
    let reached = finding("address", format!("{address} answers in {spoken}"));
    let told = match admin.describe_cluster(Some(&[])) {
        Ok(cluster) => told(&cluster, protocol),
        Err(error) => {
            let remedy = "see the broker's log".to_owned();
            return vec![reached, fault("address", error.to_string(), remedy)];
        }
    };
    let dialled = told
        .into_iter()
        .map(|told| dial(&told, protocol, &cluster_id));
    std::iter::once(reached).chain(dialled).collect()
}

/// In our protocol, or in Kafka's if something listens that doesn't speak ours.
fn connect(address: &str) -> Result<(Admin, Protocol), Error> {
    let native = match Admin::connect(&[address], config(Protocol::Native)) {
        Ok(admin) => return Ok((admin, Protocol::Native)),
        Err(error @ Error::Unreachable { .. }) => return Err(error),
        Err(error) => error,
    };
    let kafka = Admin::connect(&[address], config(Protocol::Kafka));
    kafka
        .map(|admin| (admin, Protocol::Kafka))
        .map_err(|_| native)
}

fn config(protocol: Protocol) -> ClientConfig {
    ClientConfig {
        protocol,
        connect_timeout: CONNECT_TIMEOUT,
        request_timeout: ANSWER_TIMEOUT,
        call_timeout: ANSWER_TIMEOUT,
        ..client_config()
    }
}

fn told(cluster: &ClusterDescription, protocol: Protocol) -> Vec<Told> {
    let mut told = Vec::new();
    for broker in &cluster.brokers {
        let (name, setting) = match protocol {
            Protocol::Native => ("native", "native.advertised"),
            Protocol::Kafka => ("kafka", "kafka.advertised"),
        };
        told.push(Told {
            name,
            address: broker.address.to_string(),
            setting,
        });
        for core in broker.core_addresses.iter().flatten() {
            told.push(Told {
                name: "core",
                address: core.to_string(),
                setting: "native.core_advertised_host",
            });
        }
    }
    told
}

fn dial(told: &Told, protocol: Protocol, cluster_id: &str) -> Finding {
    let Told {
        name,
        address,
        setting,
    } = told;
    let remedy = format!(
        "set {setting} to what reaches the broker from here, and start it again; it is what clients are told instead of {address}"
    );
    match Admin::connect(&[address], config(protocol)) {
        Ok(admin) if admin.broker().cluster_id != cluster_id => {
            let other = format!("{address} is a broker of another cluster");
            fault(name, other, remedy)
        }
        Ok(_) => finding(name, format!("{address} answers")),
        Err(error) => fault(name, error.to_string(), remedy),
    }
}

fn finding(name: &'static str, text: String) -> Finding {
    Finding {
        name,
        level: Level::Ok,
        text,
        remedy: None,
    }
}

fn fault(name: &'static str, text: String, remedy: String) -> Finding {
    Finding {
        level: Level::Fault,
        remedy: Some(remedy),
        ..finding(name, text)
    }
}
