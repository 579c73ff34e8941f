//! The kind TemplateVM as a component.

proxops_kind::export_kind!(proxops_qemu::TemplateVm);
proxops_kind::small_blocks!();
