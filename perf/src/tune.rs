//! What the host could do for a broker: each knob, what it is, what would be better and why. Changes nothing unless
//! asked to.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::Usage;

/// What to look at, and whether to change it.
#[derive(clap::Args)]
pub struct TuneArguments {
    /// Folder with the broker's data: its device is looked at.
    #[arg(long, value_name = "DIR", default_value = ".")]
    data: PathBuf,
    /// Changes what is not as it should be, until the next boot.
    #[arg(long)]
    apply: bool,
}

/// One setting of the host.
struct Knob {
    path: PathBuf,
    wanted: Wanted,
    why: &'static str,
}

/// What a knob should hold.
#[derive(Clone, Copy)]
enum Wanted {
    /// This word; among several the chosen one stands in brackets.
    Word(&'static str),
    /// A number of at least so much.
    AtLeast(u64),
    /// A number of at most so much.
    AtMost(u64),
}

impl Wanted {
    fn holds(self, text: &str) -> bool {
        let number = || text.parse::<u64>();
        match self {
            Wanted::Word(word) => text == word || text.contains(&format!("[{word}]")),
            Wanted::AtLeast(least) => number().is_ok_and(|number| number >= least),
            Wanted::AtMost(most) => number().is_ok_and(|number| number <= most),
        }
    }

    fn value(self) -> String {
        match self {
            Wanted::Word(word) => word.to_owned(),
            Wanted::AtLeast(number) | Wanted::AtMost(number) => number.to_string(),
        }
    }
}

/// Shows every knob, and turns those that need it if asked to.
///
/// # Errors
/// When the folder is not there, or a knob can't be turned.
pub fn run(arguments: &TuneArguments) -> Result<()> {
    let mut wrong = 0;
    for knob in knobs(&arguments.data)? {
        let Ok(text) = fs::read_to_string(&knob.path) else {
            println!("-       {}: not on this machine", knob.path.display());
            continue;
        };
        let text = text.trim();
        if knob.wanted.holds(text) {
            println!("ok      {} = {text}", knob.path.display());
            continue;
        }
        let (path, value) = (knob.path.display(), knob.wanted.value());
        if arguments.apply {
            fs::write(&knob.path, &value)
                .with_context(|| format!("{path} can't be set to {value}; it takes root"))?;
            println!("set     {path} = {value}, was {text}: {}", knob.why);
        } else {
            println!("better  {path} = {value}, is {text}: {}", knob.why);
            wrong += 1;
        }
    }
    if wrong > 0 {
        println!("\n{wrong} could be better; --apply as root sets them until the next boot");
    }
    Ok(())
}

fn knobs(data: &Path) -> Result<Vec<Knob>> {
    let fixed = [
        (
            "/proc/sys/kernel/io_uring_disabled",
            Wanted::AtMost(0),
            "the broker runs on io_uring",
        ),
        (
            "/proc/sys/net/core/somaxconn",
            Wanted::AtLeast(1024),
            "connections that arrive together wait here instead of being refused",
        ),
        (
            "/proc/sys/net/ipv4/tcp_slow_start_after_idle",
            Wanted::AtMost(0),
            "a connection that paused sends at full speed at once",
        ),
        (
            "/proc/sys/vm/swappiness",
            Wanted::AtMost(1),
            "a core that waits for its memory to be swapped in serves nobody",
        ),
        (
            "/sys/kernel/mm/transparent_hugepage/enabled",
            Wanted::Word("madvise"),
            "the kernel does not stop a core to join pages",
        ),
    ];
    let mut knobs: Vec<Knob> = fixed
        .into_iter()
        .map(|(path, wanted, why)| Knob {
            path: path.into(),
            wanted,
            why,
        })
        .collect();
    if let Some(queue) = queue_of(data)? {
        knobs.push(Knob {
            path: queue.join("scheduler"),
            wanted: Wanted::Word("none"),
            why: "the broker's writes are few, large and in order already",
        });
    }
    let governors = fs::read_dir("/sys/devices/system/cpu")
        .into_iter()
        .flatten()
        .flatten();
    for entry in governors {
        let path = entry.path().join("cpufreq/scaling_governor");
        if path.is_file() {
            knobs.push(Knob {
                path,
                wanted: Wanted::Word("performance"),
                why: "a CPU that clocks down between events answers late",
            });
        }
    }
    Ok(knobs)
}

/// The request queue of the device that holds `data`; a partition's is that of its disk. `None` where there is no
/// device of its own, as on overlay and network file systems.
fn queue_of(data: &Path) -> Result<Option<PathBuf>> {
    let metadata =
        fs::metadata(data).map_err(|error| Usage(format!("--data {}: {error}", data.display())))?;
    ensure!(
        metadata.is_dir(),
        Usage(format!("--data {} is not a folder", data.display()))
    );
    let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    let device = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    Ok(["queue", "../queue"]
        .iter()
        .map(|queue| device.join(queue))
        .find(|queue| queue.is_dir()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_knob_is_right_or_it_is_not() {
        assert!(Wanted::Word("none").holds("[none] mq-deadline"));
        assert!(!Wanted::Word("none").holds("none [mq-deadline]"));
        assert!(Wanted::AtLeast(1024).holds("4096"));
        assert!(!Wanted::AtLeast(1024).holds("128"));
        assert!(!Wanted::AtMost(0).holds("not a number"));
    }
}
