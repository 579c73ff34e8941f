//! Memory of a component. A call of a kind compares some hundred short keys and makes and drops a thousand short
//! texts; what the standard library brings for WebAssembly compares byte by byte and searches a heap. `memcmp`
//! comes with this crate, [`Blocks`] with [`crate::small_blocks!`]; natively neither is used outside tests.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

/// Step of block sizes, and their alignment.
const STEP: usize = 16;
/// Blocks of more bytes are the system allocator's.
const LARGEST: usize = 1024;
/// What is taken from the system allocator at a time.
const CHUNK: usize = 16 << 10;

/// An allocator for short lives on one thread: free blocks wait in a list for each size, so that taking and giving
/// back are a few instructions. A freed block serves the next request of its size; large ones go back to the system
/// allocator.
#[derive(Debug)]
pub struct Blocks {
    /// First free block of each size; a free block begins with the address of the next one.
    free: [Cell<*mut u8>; LARGEST / STEP],
    /// The part of the last chunk that was not cut yet, and its length.
    rest: Cell<(*mut u8, usize)>,
}

// SAFETY: a component has one thread: WebAssembly without threads, the only target that this is compiled for.
#[cfg(all(target_family = "wasm", not(target_feature = "atomics")))]
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Without any memory yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { free: [const { Cell::new(null_mut()) }; LARGEST / STEP], rest: Cell::new((null_mut(), 0)) }
    }

    /// The list for a request; `None` for the system allocator's.
    fn list(&self, layout: Layout) -> Option<&Cell<*mut u8>> {
        if layout.align() > STEP {
            return None;
        }
        self.free.get(layout.size().wrapping_sub(1) / STEP)
    }

    /// A block of `size` bytes, a multiple of the step, from a chunk; null when there is no memory.
    #[cold]
    #[inline(never)]
    fn cut(&self, size: usize) -> *mut u8 {
        let (mut at, mut left) = self.rest.get();
        if left < size {
            if let Some(list) = self.free.get((left / STEP).wrapping_sub(1)) {
                // SAFETY: `left` bytes at `at` are the end of a chunk, aligned and used by nobody; they are a
                // block of that size from now on.
                unsafe { push(list, at) };
            }
            let Ok(layout) = Layout::from_size_align(CHUNK, STEP) else { return null_mut() };
            // SAFETY: the layout has a size.
            (at, left) = (unsafe { System.alloc(layout) }, CHUNK);
            if at.is_null() {
                self.rest.set((at, 0));
                return at;
            }
        }
        // SAFETY: `size` is at most `left`, so that the sum lies within the chunk or at its end.
        self.rest.set((unsafe { at.add(size) }, left - size));
        at
    }
}

/// # Safety
/// `block` is aligned for a pointer, holds one, and nobody uses it.
unsafe fn push(list: &Cell<*mut u8>, block: *mut u8) {
    // SAFETY: see above.
    unsafe { block.cast::<*mut u8>().write(list.get()) };
    list.set(block);
}

// SAFETY: a block lies in no list while it is handed out, and blocks do not overlap: each is cut from a chunk once,
// with a size and alignment that fit every layout of its list. No path unwinds.
unsafe impl GlobalAlloc for Blocks {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(list) = self.list(layout) else {
            // SAFETY: the caller's promise.
            return unsafe { System.alloc(layout) };
        };
        let first = list.get();
        if first.is_null() {
            return self.cut(layout.size().next_multiple_of(STEP));
        }
        // SAFETY: a block in a list begins with the address of the next one.
        list.set(unsafe { first.cast::<*mut u8>().read() });
        first
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match self.list(layout) {
            // SAFETY: the caller gives the block up; it has at least one step and its alignment.
            Some(list) => unsafe { push(list, block) },
            // SAFETY: the caller's promise.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the size is not zero and fits with this alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (self.list(layout), self.list(wanted)) {
            (Some(old), Some(new)) if std::ptr::eq(old, new) => block,
            // SAFETY: the block came from there.
            (None, None) => unsafe { System.realloc(block, layout, size) },
            _ => {
                // SAFETY: two blocks that do not overlap, of at least so many bytes; the old one is given up.
                unsafe {
                    let moved = self.alloc(wanted);
                    if !moved.is_null() {
                        block.copy_to_nonoverlapping(moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

/// Compares as C's `memcmp` does, eight bytes at a time.
///
/// # Safety
/// Both point to `len` readable bytes.
#[cfg(any(test, all(target_family = "wasm", target_os = "unknown")))]
#[cfg_attr(not(test), unsafe(no_mangle))]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: every read lies within the first `len` bytes.
    unsafe {
        if len >= 8 {
            let read = |p: *const u8, at: usize| p.add(at).cast::<u64>().read_unaligned();
            let mut at = 0;
            while at + 8 < len {
                let (x, y) = (read(a, at), read(b, at));
                if x != y {
                    return order(x, y);
                }
                at += 8;
            }
            // the end, some of it once more
            return order(read(a, len - 8), read(b, len - 8));
        }
        if len >= 4 {
            let read = |p: *const u8, at: usize| u64::from(p.add(at).cast::<u32>().read_unaligned());
            let x = read(a, 0) | read(a, len - 4) << 32;
            return order(x, read(b, 0) | read(b, len - 4) << 32);
        }
        let mut at = 0;
        while at < len {
            let (x, y) = (a.add(at).read(), b.add(at).read());
            if x != y {
                return i32::from(x) - i32::from(y);
            }
            at += 1;
        }
        0
    }
}

/// The order of the first bytes that differ: WebAssembly is little-endian, so they are the lowest.
#[cfg(any(test, all(target_family = "wasm", target_os = "unknown")))]
fn order(x: u64, y: u64) -> i32 {
    let differ = x ^ y;
    if differ == 0 {
        return 0;
    }
    let bit = differ.trailing_zeros() & !7;
    let byte = |word: u64| i32::from((word >> bit) as u8);
    byte(x) - byte(y)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn compare(a: &[u8], b: &[u8]) -> Ordering {
        let len = a.len().min(b.len());
        // SAFETY: both are that long.
        unsafe { memcmp(a.as_ptr(), b.as_ptr(), len) }.cmp(&0)
    }

    #[test]
    fn every_length_and_place_of_a_difference_is_ordered() {
        for len in 0..40 {
            let a: Vec<u8> = (0..len).map(|i| i as u8 * 5).collect();
            assert_eq!(compare(&a, &a), Ordering::Equal);
            for at in 0..len {
                for later in [at, len - 1] {
                    let mut b = a.clone();
                    (b[later], b[at]) = (0, 255);
                    assert_eq!(compare(&a, &b), Ordering::Less, "{len} {at} {later}");
                    assert_eq!(compare(&b, &a), Ordering::Greater, "{len} {at} {later}");
                }
            }
        }
    }

    /// Blocks that live at a time, each filled with a byte of its own.
    struct Live {
        blocks: Blocks,
        all: Vec<(*mut u8, Layout, u8)>,
    }

    impl Live {
        fn holds(&self, index: usize) -> bool {
            let (at, layout, byte) = self.all[index];
            // SAFETY: the block lives and was filled.
            unsafe { std::slice::from_raw_parts(at, layout.size()) }.iter().all(|b| *b == byte)
        }

        fn take(&mut self, layout: Layout, byte: u8) {
            // SAFETY: the size is not zero; the block is as large.
            let at = unsafe { self.blocks.alloc(layout) };
            assert!(!at.is_null() && at.addr().is_multiple_of(layout.align()));
            // SAFETY: as above.
            unsafe { at.write_bytes(byte, layout.size()) };
            self.all.push((at, layout, byte));
        }

        fn give(&mut self, index: usize) {
            assert!(self.holds(index));
            let (at, layout, _) = self.all.swap_remove(index);
            // SAFETY: it came from there and is forgotten.
            unsafe { self.blocks.dealloc(at, layout) };
        }

        fn resize(&mut self, index: usize, size: usize) {
            let (at, layout, byte) = self.all[index];
            // SAFETY: it came from there; the new size is not zero.
            let at = unsafe { self.blocks.realloc(at, layout, size) };
            let wanted = Layout::from_size_align(size, layout.align()).expect("small");
            self.all[index] = (at, Layout::from_size_align(size.min(layout.size()), 1).expect("small"), byte);
            assert!(self.holds(index), "what fits is kept");
            // SAFETY: the block is as large now.
            unsafe { at.write_bytes(byte, size) };
            self.all[index].1 = wanted;
        }
    }

    proptest! {
        #[test]
        fn comparing_is_the_order_of_bytes(a in "[ab]{0,40}", b in "[ab]{0,40}") {
            let len = a.len().min(b.len());
            prop_assert_eq!(compare(a.as_bytes(), b.as_bytes()), a.as_bytes()[..len].cmp(&b.as_bytes()[..len]));
        }

        #[test]
        fn no_block_touches_another(
            steps in proptest::collection::vec((0..3u8, any::<u16>(), 1..2000usize, 0..6u32), 1..400),
        ) {
            let mut live = Live { blocks: Blocks::new(), all: Vec::new() };
            for (n, (what, which, size, align)) in steps.into_iter().enumerate() {
                let index = usize::from(which).checked_rem(live.all.len());
                match (what, index) {
                    (1, Some(index)) => live.give(index),
                    (2, Some(index)) => live.resize(index, size),
                    _ => live.take(Layout::from_size_align(size, 1 << align).expect("small"), n as u8),
                }
            }
            while !live.all.is_empty() {
                live.give(0);
            }
        }
    }

    #[test]
    fn a_block_given_back_serves_the_next_request_of_its_size() {
        let blocks = Blocks::new();
        let layout = Layout::from_size_align(20, 4).expect("small");
        // SAFETY: the size is not zero, and each block is given back once.
        unsafe {
            let first = blocks.alloc(layout);
            for _ in 0..100_000 {
                let other = blocks.alloc(layout);
                blocks.dealloc(other, layout);
                assert!(other.addr().abs_diff(first.addr()) < CHUNK);
            }
        }
    }
}
