//! The component of the built-in kind `LXC`.

proxops_kind::export_kind!(proxops_container::Lxc);
proxops_kind::small_blocks!();
