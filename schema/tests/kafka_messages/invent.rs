//! Makes messages up, the same for the same seed.

use bytes::Bytes;
use tackboard_schema::TopicId;
use tackboard_schema::kafka::{Records, Str};

/// How messages are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each test uses some")]
pub enum Extent {
    /// Null where that is allowed, otherwise empty, otherwise the least number.
    Least,
    /// Two of everything, and the largest numbers.
    Most,
    /// Any of these and others.
    Random,
}

/// Makes values up for messages of one version.
pub struct Inventor {
    /// The version.
    pub version: i16,
    extent: Extent,
    state: u64,
}

/// A type of which values can be made up.
pub trait Invent {
    /// Makes one.
    fn invent(by: &mut Inventor) -> Self;
}

impl Inventor {
    pub fn new(version: i16, extent: Extent, seed: u64) -> Self {
        Self {
            version,
            extent,
            state: seed,
        }
    }

    pub fn value<T: Invent>(&mut self) -> T {
        T::invent(self)
    }

    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of several, from the least to the most.
    fn among<T: Clone>(&mut self, choices: &[T]) -> T {
        let index = match self.extent {
            Extent::Least => 0,
            Extent::Most => choices.len() - 1,
            Extent::Random => (self.next() % choices.len() as u64) as usize,
        };
        choices[index].clone()
    }
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Invent for $type {
            fn invent(by: &mut Inventor) -> Self {
                let any = by.next() as $type;
                by.among(&[<$type>::MIN, -1, 0, 1, any, any, any, <$type>::MAX])
            }
        })*
    };
}

integers!(i8 i16 i32 i64);

impl Invent for bool {
    fn invent(by: &mut Inventor) -> Self {
        by.among(&[false, true])
    }
}

impl Invent for TopicId {
    fn invent(by: &mut Inventor) -> Self {
        let any = [by.next().to_be_bytes(), by.next().to_be_bytes()].concat();
        by.among(&[[0; 16], any.try_into().unwrap(), [0xff; 16]].map(TopicId))
    }
}

impl Invent for Str {
    fn invent(by: &mut Inventor) -> Self {
        // 127 and 128 bytes: where a compact length begins to take two.
        let (short, long) = ("x".repeat(126), "y".repeat(127));
        let texts = [
            "",
            "a",
            "topic-1",
            "\u{0}\"\\\n",
            "ü→🦀",
            &short,
            &long,
            "z",
        ];
        Str::from(by.among(&texts))
    }
}

impl Invent for Bytes {
    fn invent(by: &mut Inventor) -> Self {
        let any: Vec<u8> = (0..by.next() % 300).map(|_| by.next() as u8).collect();
        let all: Vec<u8> = (0..=255).collect();
        by.among(&[
            Bytes::new(),
            Bytes::from_static(b"\0"),
            any.into(),
            all.into(),
        ])
    }
}

impl Invent for Records {
    fn invent(by: &mut Inventor) -> Self {
        Records::Here(by.value())
    }
}

impl<T: Invent> Invent for Vec<T> {
    fn invent(by: &mut Inventor) -> Self {
        let count = by.among(&[0, 1, 3, 2]);
        (0..count).map(|_| by.value()).collect()
    }
}

impl<T: Invent> Invent for Option<T> {
    fn invent(by: &mut Inventor) -> Self {
        let present = by.among(&[false, true, true]);
        present.then(|| by.value())
    }
}
