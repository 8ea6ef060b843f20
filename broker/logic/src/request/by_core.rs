//! The entries of one request, gathered by the core that owns each.

use tackboard_schema::CoreId;

/// What one core is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorePart<T> {
    /// Which core.
    pub core: CoreId,
    /// Which entries of the request they are, in the request's order.
    pub indexes: Vec<u32>,
    /// The entries, in the same order.
    pub entries: Vec<T>,
}

/// Parts of a request, one a core, in the order in which the request first names each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByCore<T> {
    parts: Vec<CorePart<T>>,
}

impl<T> Default for ByCore<T> {
    fn default() -> Self {
        Self { parts: Vec::new() }
    }
}

impl<T> ByCore<T> {
    /// Adds the entry that stands at `index` of the request.
    pub fn add(&mut self, core: CoreId, index: u32, entry: T) {
        let known = self.parts.iter().position(|part| part.core == core);
        let at = known.unwrap_or_else(|| {
            self.parts.push(CorePart {
                core,
                indexes: Vec::new(),
                entries: Vec::new(),
            });
            self.parts.len() - 1
        });
        self.parts[at].indexes.push(index);
        self.parts[at].entries.push(entry);
    }

    /// How many cores.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The parts.
    pub fn into_parts(self) -> Vec<CorePart<T>> {
        self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_gets_its_entries_in_the_order_of_the_request() {
        let mut gathered = ByCore::default();
        for (index, (core, entry)) in (0..).zip([(2, 'a'), (0, 'b'), (2, 'c'), (2, 'd')]) {
            gathered.add(CoreId(core), index, entry);
        }
        assert_eq!((gathered.len(), gathered.is_empty()), (2, false));
        let parts = gathered.into_parts().into_iter();
        let parts: Vec<_> = parts
            .map(|part| (part.core.0, part.indexes, part.entries))
            .collect();
        let expected = [
            (2, vec![0, 2, 3], vec!['a', 'c', 'd']),
            (0, vec![1], vec!['b']),
        ];
        assert_eq!(parts, expected);
    }
}
