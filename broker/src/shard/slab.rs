//! Values under keys that are never valid twice.

/// Keyed storage whose keys carry a generation: a key of a removed value finds nothing, even when its place is used
/// again. Removal and insertion allocate nothing once the slab has grown.
pub struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

/// Where a value is: the slot in the low half, its generation in the high half.
pub type Key = u64;

fn split(key: Key) -> (usize, u32) {
    ((key & u64::from(u32::MAX)) as usize, (key >> 32) as u32)
}

impl<T> Slab<T> {
    /// Stores a value and names it.
    pub fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                value: None,
            });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.value = Some(value);
        (u64::from(slot.generation) << 32) | u64::from(index)
    }

    /// The value under `key`, if it is still there.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (index, generation) = split(key);
        let slot = self.slots.get_mut(index)?;
        (slot.generation == generation)
            .then_some(slot.value.as_mut())
            .flatten()
    }

    /// Takes the value under `key`, if it is still there.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (index, generation) = split(key);
        let slot = self.slots.get_mut(index)?;
        if slot.generation != generation {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index as u32);
        Some(value)
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.value.as_ref())
    }

    /// The keys of all values.
    pub fn keys(&self) -> Vec<Key> {
        let used = |(index, slot): (usize, &Slot<T>)| {
            slot.value.as_ref()?;
            Some((u64::from(slot.generation) << 32) | index as u64)
        };
        self.slots.iter().enumerate().filter_map(used).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_outlives_its_value_without_finding_the_next_one() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.remove(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!((slab.len(), slab.keys()), (1, vec![second]));
    }
}
