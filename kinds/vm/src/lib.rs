//! The kind VM as a component.

proxops_kind::export_kind!(proxops_qemu::Vm);
proxops_kind::small_blocks!();
