//! The component of the built-in kind `TemplateCT`.

proxops_kind::export_kind!(proxops_container::TemplateCt);
proxops_kind::small_blocks!();
