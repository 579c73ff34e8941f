//! The contract `wit/kind.wit` as wasmtime sees it. Only `lower`, `lift` and `store` use these types.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "kind",
    ownership: Borrowing { duplicate_if_necessary: true },
});
