//! From an RFC 6901 pointer to a line and column.

/// A place in a file: both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Where a node stands. Below an alias this is where its anchor wrote it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spot {
    /// Of the key, if the node is an entry of a mapping.
    pub key: Option<Pos>,
    /// Of the value; for an empty value where it could stand.
    pub value: Pos,
}

/// The positions of all nodes of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Positions {
    /// Sorted by pointer.
    nodes: Box<[(Box<str>, Spot)]>,
}

impl Positions {
    /// From pointers that are all different.
    pub(super) fn new(mut nodes: Vec<(Box<str>, Spot)>) -> Self {
        nodes.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self { nodes: nodes.into_boxed_slice() }
    }

    /// The node at exactly this pointer.
    pub fn spot(&self, pointer: &str) -> Option<Spot> {
        let found = self.nodes.binary_search_by(|(at, _)| at.as_ref().cmp(pointer)).ok()?;
        self.nodes.get(found).map(|(_, spot)| *spot)
    }

    /// Where to point a reader: at the key of a mapping's entry, else at the value; for a pointer that
    /// leads nowhere at the nearest part that exists.
    pub fn locate(&self, pointer: &str) -> Pos {
        let mut pointer = pointer;
        loop {
            if let Some(spot) = self.spot(pointer) {
                return spot.key.unwrap_or(spot.value);
            }
            match pointer.rfind('/') {
                Some(cut) => pointer = &pointer[..cut],
                None => return Pos { line: 1, column: 1 },
            }
        }
    }

    /// Where the value stands; as `locate` for a pointer that leads nowhere.
    pub fn value(&self, pointer: &str) -> Pos {
        self.spot(pointer).map_or_else(|| self.locate(pointer), |spot| spot.value)
    }

    /// Every pointer with its spot, sorted by pointer.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Spot)> {
        self.nodes.iter().map(|(pointer, spot)| (pointer.as_ref(), *spot))
    }
}
