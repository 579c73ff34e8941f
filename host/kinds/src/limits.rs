//! What one call of a kind may use. Each limit has a name that the fault tells.

use std::time::Duration;

/// Bytes in a MiB.
const MIB: usize = 1024 * 1024;

/// Limits of one store (one instance of a kind) and of each call into it.
///
/// There is no `Default` on purpose: whoever builds a store says what it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Linear memory of all memories together, in bytes.
    pub memory: usize,
    /// Work per call in wasmtime's fuel, about one unit an instruction. Deterministic: the same call
    /// ends the same way on a slow machine.
    pub fuel: u64,
    /// Wall clock per call, the net below `fuel`. Resolution 10 ms.
    pub deadline: Duration,
    /// Bytes that one answer may copy out of the component.
    pub output_bytes: usize,
    /// Elements of all lists of one answer together.
    pub output_items: usize,
    /// Elements of all tables together; interpreters need thousands.
    pub table_elements: usize,
    /// Core instances of a component; a Python component has about 40.
    pub instances: usize,
    /// Stack of WebAssembly frames in bytes.
    pub stack: usize,
    /// Log lines per call; more are dropped.
    pub log_lines: usize,
    /// Bytes of log per call; more is dropped.
    pub log_bytes: usize,
    /// Size of a component file in bytes.
    pub component_bytes: usize,
    /// Time to compile one component, apart from call deadlines.
    pub compile: Duration,
}

impl Limits {
    /// What an honest kind in any language fits into (measured with Rust, Python and JavaScript kinds).
    pub fn standard() -> Self {
        Self {
            memory: 64 * MIB,
            fuel: 400_000_000,
            deadline: Duration::from_secs(1),
            output_bytes: 4 * MIB,
            output_items: 20_000,
            table_elements: 20_000,
            instances: 64,
            stack: 512 * 1024,
            log_lines: 100,
            log_bytes: 16 * 1024,
            component_bytes: 64 * MIB,
            compile: Duration::from_secs(120),
        }
    }

    /// The larger of each: what a component gets before it has said which kind it is.
    #[must_use]
    pub(crate) fn or_more(&self, other: &Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            fuel: self.fuel.max(other.fuel),
            deadline: self.deadline.max(other.deadline),
            output_bytes: self.output_bytes.max(other.output_bytes),
            output_items: self.output_items.max(other.output_items),
            table_elements: self.table_elements.max(other.table_elements),
            instances: self.instances.max(other.instances),
            stack: self.stack.max(other.stack),
            log_lines: self.log_lines.max(other.log_lines),
            log_bytes: self.log_bytes.max(other.log_bytes),
            component_bytes: self.component_bytes.max(other.component_bytes),
            compile: self.compile.max(other.compile),
        }
    }
}

/// A limit that the host itself enforces, as an error that can be told apart from a trap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LimitHit {
    #[error("it asked for {} of memory (limit memory = {})", size(*wanted), size(*limit))]
    Memory { wanted: usize, limit: usize },
    #[error("it asked for {wanted} table elements (limit table-elements = {limit})")]
    Table { wanted: usize, limit: usize },
    #[error("its answer has more than {limit} list elements (limit output-items = {limit})")]
    Items { limit: usize },
}

/// A size for people: whole MiB or KiB where it is one, else bytes.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{} MiB", b / MIB),
        b if b >= 1024 && b.is_multiple_of(1024) => format!("{} KiB", b / 1024),
        b => format!("{b} bytes"),
    }
}
